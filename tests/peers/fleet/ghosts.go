package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// How a ghost behaves.
const (
	good int32 = iota
	// It answers health checks, and nothing else.
	silent
	// Its lists, and the states that it sends in watches, have no end.
	endless
)

// The version that ghosts have at their start.
const firstVersion = 1_000_000

// How many events a ghost remembers.
const remembered = 50_000

// An event of Pods, ready to be sent.
type sent struct {
	version uint64
	line    []byte
}

// A ghost is a member with computed objects. Only its Pods change.
type ghost struct {
	number int
	kinds  map[string]*kind
	mood   atomic.Int32
	lists  atomic.Int64
	// All watches that were begun, and those that run.
	watches, running atomic.Int64
	lock             sync.Mutex
	version          uint64
	events           []sent
	news             chan struct{}
}

func newGhost(number int, all []*kind) *ghost {
	ghost := &ghost{number: number, kinds: map[string]*kind{}, version: firstVersion, news: make(chan struct{})}
	for _, one := range all {
		ghost.kinds[one.path()] = one
	}
	return ghost
}

// change lets Pods change, so many at once, with the time in an annotation.
func (g *ghost) change(first, count int) {
	pods := g.kinds["/api/v1/pods"]
	g.lock.Lock()
	defer g.lock.Unlock()
	for number := first; number < first+count; number++ {
		g.version++
		line := &bytes.Buffer{}
		line.WriteString(`{"type":"MODIFIED","object":`)
		pods.write(line, g.number, number%pods.count, g.version, fmt.Sprintf(`,"example.com/sent":"%d"`, time.Now().UnixNano()))
		line.WriteString("}\n")
		g.events = append(g.events, sent{g.version, line.Bytes()})
	}
	if len(g.events) > remembered {
		g.events = append([]sent(nil), g.events[len(g.events)-remembered/2:]...)
	}
	close(g.news)
	g.news = make(chan struct{})
}

// since returns the events after a version, whether they are all known, and what is closed when there are more.
func (g *ghost) since(version uint64) ([]sent, bool, chan struct{}) {
	g.lock.Lock()
	defer g.lock.Unlock()
	known := len(g.events) == 0 && version >= firstVersion || len(g.events) > 0 && version+1 >= g.events[0].version
	from := len(g.events)
	for from > 0 && g.events[from-1].version > version {
		from--
	}
	return g.events[from:], known, g.news
}

func (g *ghost) now() uint64 {
	g.lock.Lock()
	defer g.lock.Unlock()
	return g.version
}

func (g *ghost) ServeHTTP(out http.ResponseWriter, request *http.Request) {
	path, query := request.URL.Path, request.URL.Query()
	out.Header().Set("Content-Type", "application/json")
	if path == "/readyz" {
		fmt.Fprint(out, "ok")
		return
	}
	if g.mood.Load() == silent {
		<-request.Context().Done()
		return
	}
	one := g.kinds[path]
	switch {
	case path == "/version":
		fmt.Fprint(out, `{"major":"1","minor":"36","gitVersion":"v1.36.0"}`)
	case path == "/api" || path == "/apis":
		g.discovery(out, path == "/api")
	case path == "/api/v1/namespaces":
		fmt.Fprintf(out, `{"kind":"NamespaceList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[`+
			`{"metadata":{"name":"kube-system","uid":"ghost-%d","resourceVersion":"1"}}]}`, g.now(), g.number)
	case one != nil && query.Get("watch") != "":
		g.watch(out, request, one)
	case one != nil:
		from, _ := strconv.Atoi(query.Get("continue"))
		limit, _ := strconv.Atoi(query.Get("limit"))
		if limit <= 0 {
			limit = 500
		}
		if from == 0 {
			g.lists.Add(1)
		}
		page := &bytes.Buffer{}
		one.page(page, g.number, from, limit, g.now(), g.mood.Load() == endless)
		_, _ = out.Write(page.Bytes())
	default:
		out.WriteHeader(http.StatusNotFound)
		fmt.Fprint(out, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound","message":"a ghost has no such path"}`)
	}
}

func (g *ghost) watch(out http.ResponseWriter, request *http.Request, one *kind) {
	g.watches.Add(1)
	g.running.Add(1)
	defer g.running.Add(-1)
	version, _ := strconv.ParseUint(request.URL.Query().Get("resourceVersion"), 10, 64)
	seconds, _ := strconv.Atoi(request.URL.Query().Get("timeoutSeconds"))
	if seconds <= 0 {
		seconds = 600
	}
	ctx, stop := context.WithTimeout(request.Context(), time.Duration(seconds)*time.Second)
	defer stop()
	flusher, _ := out.(http.Flusher)
	flusher.Flush()
	if request.URL.Query().Get("sendInitialEvents") == "true" {
		g.lists.Add(1)
		version = g.now()
		if !g.state(ctx, out, one, version) {
			return
		}
		flusher.Flush()
	}
	bookmarks := time.NewTicker(time.Minute)
	defer bookmarks.Stop()
	for {
		events, known, news := g.since(version)
		if !known {
			fmt.Fprint(out, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","code":410,"reason":"Expired","message":"too old resource version"}}`+"\n")
			return
		}
		for _, event := range events {
			version = event.version
			if one.resource != "pods" {
				continue
			}
			if _, err := out.Write(event.line); err != nil {
				return
			}
		}
		if len(events) > 0 && one.resource == "pods" {
			flusher.Flush()
		}
		select {
		case <-ctx.Done():
			return
		case <-news:
		case <-bookmarks.C:
			fmt.Fprintf(out, `{"type":"BOOKMARK","object":{"kind":"%s","apiVersion":"%s","metadata":{"resourceVersion":"%d"}}}`+"\n",
				one.name, one.apiVersion(), version)
			flusher.Flush()
		}
	}
}

// state sends all objects, and the bookmark that says so. It returns whether the client is still there.
func (g *ghost) state(ctx context.Context, out http.ResponseWriter, one *kind, version uint64) bool {
	line := &bytes.Buffer{}
	for number := 0; number < one.count || g.mood.Load() == endless; number++ {
		line.WriteString(`{"type":"ADDED","object":`)
		one.write(line, g.number, number, uint64(number)+1, "")
		line.WriteString("}\n")
		if line.Len() < 64<<10 {
			continue
		}
		if _, err := out.Write(line.Bytes()); err != nil || ctx.Err() != nil {
			return false
		}
		line.Reset()
	}
	fmt.Fprintf(line, `{"type":"BOOKMARK","object":{"kind":"%s","apiVersion":"%s","metadata":{"resourceVersion":"%d",`+
		`"annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n", one.name, one.apiVersion(), version)
	_, err := out.Write(line.Bytes())
	return err == nil
}

func (g *ghost) discovery(out http.ResponseWriter, core bool) {
	type object = map[string]any
	byGroup := map[string][]object{}
	for _, one := range g.kinds {
		byGroup[one.group] = append(byGroup[one.group], object{
			"resource": one.resource, "responseKind": object{"group": one.group, "version": one.version, "kind": one.name},
			"scope": "Namespaced", "singularResource": strings.ToLower(one.name), "verbs": []string{"get", "list", "watch"},
		})
	}
	items := []object{}
	for _, group := range groupNames {
		if (group == "") != core {
			continue
		}
		metadata := object{}
		if group != "" {
			metadata["name"] = group
		}
		version := object{"version": "v1", "freshness": "Current", "resources": byGroup[group]}
		items = append(items, object{"metadata": metadata, "versions": []object{version}})
	}
	_ = json.NewEncoder(out).Encode(object{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items})
}

// certificate makes a key and a certificate for this machine that is its own authority.
func certificate() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ghosts"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true, IsCA: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	made, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made})
	return tls.Certificate{Certificate: [][]byte{made}, PrivateKey: key}, text, nil
}

// ghosts serves members until it is stopped. PediaClusters for them go to a file.
func ghosts(flags *flag.FlagSet) func(context.Context, *rest.Config) error {
	members := flags.Int("members", 100, "how many members there are")
	objects := flags.Int("objects", 10_000, "how many objects each has")
	file := flags.String("clusters", "clusters.json", "where the PediaClusters go")
	address := flags.String("control", "127.0.0.1:0", "the address of the control")

	return func(ctx context.Context, _ *rest.Config) error {
		pair, authority, err := certificate()
		if err != nil {
			return err
		}
		all := kinds(*objects)
		var served []*ghost
		var clusters []any
		for number := range *members {
			one := newGhost(number, all)
			served = append(served, one)
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			server := &http.Server{Handler: one, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}}}
			go func() { _ = server.ServeTLS(listener, "", "") }()
			clusters = append(clusters, map[string]any{
				"apiVersion": "cluster.clusterpedia.io/v1alpha2", "kind": "PediaCluster",
				"metadata": map[string]any{"name": fmt.Sprintf("ghost-%03d", number)},
				"spec": map[string]any{
					"apiserver": "https://" + listener.Addr().String(), "caData": base64.StdEncoding.EncodeToString(authority),
					"tokenData":     base64.StdEncoding.EncodeToString([]byte("ghost")),
					"syncResources": []any{map[string]any{"group": "*", "resources": []string{"*"}}},
				},
			})
		}
		text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": clusters})
		if err != nil {
			return err
		}
		if err := os.WriteFile(*file, text, 0o600); err != nil {
			return err
		}
		listener, err := net.Listen("tcp", *address)
		if err != nil {
			return err
		}
		go func() { _ = http.Serve(listener, control(served)) }()
		total := 0
		for _, one := range all {
			total += one.count
		}
		say(map[string]any{
			"type": "READY", "control": "http://" + listener.Addr().String(),
			"members": *members, "types": len(all), "objects": total * *members,
		})
		<-ctx.Done()
		return nil
	}
}

// control changes ghosts and tells what they were asked for.
func control(served []*ghost) http.Handler {
	mux := http.NewServeMux()
	number := func(request *http.Request, name string) int {
		value, _ := strconv.Atoi(request.URL.Query().Get(name))
		return value
	}
	mux.HandleFunc("/counts", func(out http.ResponseWriter, _ *http.Request) {
		var lists, watches, running int64
		for _, one := range served {
			lists += one.lists.Load()
			watches += one.watches.Load()
			running += one.running.Load()
		}
		_ = json.NewEncoder(out).Encode(map[string]int64{"lists": lists, "watches": watches, "running": running})
	})
	mux.HandleFunc("/mood", func(out http.ResponseWriter, request *http.Request) {
		moods := map[string]int32{"good": good, "silent": silent, "endless": endless}
		one := served[number(request, "member")%len(served)]
		one.mood.Store(moods[request.URL.Query().Get("mood")])
	})
	// So many events of one member, now.
	mux.HandleFunc("/change", func(out http.ResponseWriter, request *http.Request) {
		one := served[number(request, "member")%len(served)]
		one.change(number(request, "first"), max(number(request, "count"), 1))
	})
	return mux
}
