// A kubelet for tests: the streaming server of real kubelets, with local processes instead of containers.
//
// It prints its port as a line on stdout, and serves exec, attach, portForward, containerLogs, metrics/resource
// and healthz over TLS.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

const (
	idle     = time.Hour
	creation = 30 * time.Second
)

type runtime struct{}

// ExecInContainer runs a local process. The command terminal-size prints the client's first terminal sizes.
func (runtime) ExecInContainer(ctx context.Context, pod, uid, container string, cmd []string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	if len(cmd) > 0 && cmd[0] == "terminal-size" {
		size := <-resize
		fmt.Fprintf(out, "%dx%d\n", size.Width, size.Height)
		return nil
	}
	if len(cmd) == 0 {
		return errors.New("no command")
	}
	process := exec.CommandContext(ctx, cmd[0], cmd[1:]...)
	process.Env = append(os.Environ(), "POD="+pod, "CONTAINER="+container)
	process.Stdout = out
	process.Stderr = errOut
	if tty {
		process.Stderr = out
	}
	if in != nil {
		// Not process.Stdin: a process that ends early must not wait for input.
		pipe, err := process.StdinPipe()
		if err != nil {
			return err
		}
		go func() {
			_, _ = io.Copy(pipe, in)
			_ = pipe.Close()
		}()
	}
	err := process.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return utilexec.CodeExitError{Err: err, Code: exit.ExitCode()}
	}
	return err
}

// AttachContainer echoes what it reads.
func (runtime) AttachContainer(_ context.Context, pod, uid, container string, in io.Reader, out, _ io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize) error {
	fmt.Fprintf(out, "attached to %s\n", container)
	if in == nil {
		return nil
	}
	_, err := io.Copy(out, in)
	return err
}

// PortForward connects to the same port of this machine.
func (runtime) PortForward(_ context.Context, pod, uid string, port int32, stream io.ReadWriteCloser) error {
	connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	defer connection.Close()
	go func() {
		_, _ = io.Copy(connection, stream)
		_ = connection.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(stream, connection)
	return err
}

func logs(w http.ResponseWriter, req *http.Request) {
	query := req.URL.Query()
	w.Header().Set("Content-Type", "text/plain")
	fmt.Fprintf(w, "log %s %s\n", strings.TrimPrefix(req.URL.Path, "/containerLogs/"), query.Encode())
	if query.Get("follow") == "" {
		return
	}
	for line := 1; line <= 3; line++ {
		time.Sleep(200 * time.Millisecond)
		fmt.Fprintf(w, "line %d\n", line)
		w.(http.Flusher).Flush()
	}
	if strings.Contains(req.URL.Path, "/endless/") {
		<-req.Context().Done()
	}
}

func handler(shown containers) http.Handler {
	mux := http.NewServeMux()
	parts := func(req *http.Request) (pod, container string) {
		segments := strings.Split(req.URL.Path, "/")
		pod = segments[2] + "/" + segments[3]
		if len(segments) > 4 {
			container = segments[4]
		}
		return pod, container
	}
	options := func(w http.ResponseWriter, req *http.Request) *remotecommand.Options {
		options, err := remotecommand.NewOptions(req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return nil
		}
		return options
	}
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", func(w http.ResponseWriter, req *http.Request) {
		pod, container := parts(req)
		if given := options(w, req); given != nil {
			remotecommand.ServeExec(w, req, runtime{}, pod, "", container, req.URL.Query()["command"], given, idle, creation, remotecommand.SupportedStreamingProtocols)
		}
	})
	mux.HandleFunc("/attach/{namespace}/{pod}/{container}", func(w http.ResponseWriter, req *http.Request) {
		pod, container := parts(req)
		if given := options(w, req); given != nil {
			remotecommand.ServeAttach(w, req, runtime{}, pod, "", container, given, idle, creation, remotecommand.SupportedStreamingProtocols)
		}
	})
	mux.HandleFunc("/portForward/{namespace}/{pod}", func(w http.ResponseWriter, req *http.Request) {
		pod, _ := parts(req)
		given, err := portforward.NewV4Options(req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		portforward.ServePortForward(w, req, runtime{}, pod, "", given, idle, creation, portforward.SupportedProtocols)
	})
	mux.HandleFunc("/containerLogs/{namespace}/{pod}/{container}", logs)
	mux.HandleFunc("/metrics/resource", resourceMetrics(shown))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, req *http.Request) {
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("/who", func(w http.ResponseWriter, req *http.Request) {
		for _, certificate := range req.TLS.PeerCertificates {
			fmt.Fprintln(w, certificate.Subject.CommonName)
		}
		fmt.Fprintln(w, req.Header.Get("X-Remote-User"), req.Header.Get("Authorization"))
	})
	mux.HandleFunc("/moved", func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, "/healthz", http.StatusFound)
	})
	return mux
}

func certificate() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: "stub-kubelet"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames:     []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, text, nil
}

func run() error {
	written := flag.String("write-certificate", "", "file for the certificate, in PEM")
	var shown containers
	flag.Var(&shown, "metrics-of", "a container that has resource metrics, as NAMESPACE/POD/CONTAINER; may be repeated")
	flag.Parse()
	own, text, err := certificate()
	if err != nil {
		return err
	}
	if *written != "" {
		if err := os.WriteFile(*written, text, 0o600); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	config := &tls.Config{Certificates: []tls.Certificate{own}, ClientAuth: tls.RequestClientCert}
	server := &http.Server{Handler: handler(shown), TLSConfig: config}
	return server.ServeTLS(listener, "", "")
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
