// The smallest server that another API server can forward a group to: discovery and one list. It knows no OpenAPI and no tables, and
// its certificate is self-signed.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
)

const resources = `{
  "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "mypod.example.com/v1",
  "resources": [
    {"name": "mypods", "singularName": "mypod", "namespaced": true, "kind": "MyPod", "verbs": ["list"]}
  ]
}`

const list = `{
  "kind": "MyPodList", "apiVersion": "mypod.example.com/v1", "metadata": {},
  "items": [
    {"kind": "MyPod", "apiVersion": "mypod.example.com/v1", "metadata": {"name": "one", "namespace": "default"}},
    {"kind": "MyPod", "apiVersion": "mypod.example.com/v1", "metadata": {"name": "two", "namespace": "default"}}
  ]
}`

func main() {
	serve := func(path, body string) {
		http.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			log.Print(r.Method, " ", r.URL, " by ", r.Header.Get("X-Remote-User"))
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, body)
		})
	}
	serve("/apis/mypod.example.com/v1", resources)
	serve("/apis/mypod.example.com/v1/namespaces/default/mypods", list)
	log.Fatal(http.ListenAndServeTLS(os.Args[1], "cert.pem", "key.pem", nil))
}
