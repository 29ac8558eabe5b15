// Command pod-servers runs the servers that conformance specs deploy as pods, because hollow nodes run no containers:
// the webhooks and the converter of agnhost, and sample-apiserver with its etcd.
//
// All pods of hollow nodes have the address --address. The webhooks of all specs are one server on the port of their
// containers: it finds the certificate of a spec by the name that the client asks for.
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/test/images/agnhost/crd-conversion-webhook/converter"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig of an administrator")
	address := flag.String("address", "", "address of all pods")
	programs := flag.String("programs", "", "folder with sample-apiserver and etcd")
	dir := flag.String("dir", "", "folder for files of the pods")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	certificates, err := newCertificates(client, *dir)
	if err != nil {
		log.Fatal(err)
	}
	webhooks, err := agnhostWebhooks(*dir)
	if err != nil {
		log.Fatal(err)
	}
	conversion := http.NewServeMux()
	conversion.HandleFunc("/crdconvert", converter.ServeExampleConvert)
	conversion.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ok")) })
	serve := func(port string, secret string, handler http.Handler) {
		listener, err := net.Listen("tcp", net.JoinHostPort(*address, port))
		if err != nil {
			log.Fatal(err)
		}
		server := &http.Server{Handler: handler, TLSConfig: certificates.of(secret)}
		go func() { log.Fatal(server.ServeTLS(listener, "", "")) }()
	}
	// Ports and names of secrets are those of the specs.
	serve("8444", "sample-webhook-secret", webhooks)
	serve("9444", "sample-custom-resource-conversion-webhook-secret", conversion)
	sample := &sampleAPIServer{client: client, config: config, address: *address, programs: *programs, dir: *dir}
	sample.follow(ctx)
}
