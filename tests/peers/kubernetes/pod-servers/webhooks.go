// The webhooks of agnhost, and the certificates of the specs that deploy them.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/test/images/agnhost/webhook"
)

// agnhostWebhooks returns the handlers of `agnhost webhook`. They are not exported, but the command registers them
// before it listens, and a port that does not exist ends it there. It reads the certificate that newCertificates wrote.
func agnhostWebhooks(dir string) (handlers http.Handler, err error) {
	defer func() {
		ended := recover()
		if ended == nil {
			return
		}
		handlers, err = http.DefaultServeMux, nil
		var refused *net.OpError
		if cause, isError := ended.(error); !isError || !errors.As(cause, &refused) {
			err = fmt.Errorf("agnhost: %v", ended)
		}
	}()
	command := webhook.CmdWebhook
	command.SetArgs([]string{
		"--port=-1",
		"--tls-cert-file=" + filepath.Join(dir, "probes.crt"),
		"--tls-private-key-file=" + filepath.Join(dir, "probes.key"),
	})
	if err := command.Execute(); err != nil {
		return nil, err
	}
	return nil, errors.New("agnhost ended without listening")
}

// certificates finds the certificate of a spec: a Secret in the namespace of its Service.
type certificates struct {
	client *kubernetes.Clientset
	// For probes of kubelets, which ask for no name and verify nothing.
	probes tls.Certificate
}

func newCertificates(client *kubernetes.Clientset, dir string) (*certificates, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	keyDer, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDer})
	if err := errors.Join(
		os.WriteFile(filepath.Join(dir, "probes.crt"), certPEM, 0o600),
		os.WriteFile(filepath.Join(dir, "probes.key"), keyPEM, 0o600),
	); err != nil {
		return nil, err
	}
	probes, err := tls.X509KeyPair(certPEM, keyPEM)
	return &certificates{client: client, probes: probes}, err
}

// of returns a configuration that shows the certificate of this Secret in the namespace of the service that is asked for.
func (c *certificates) of(secret string) *tls.Config {
	return &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if hello.ServerName == "" {
			return &c.probes, nil
		}
		parts := strings.Split(hello.ServerName, ".")
		if len(parts) != 3 || parts[2] != "svc" {
			return nil, fmt.Errorf("%s is no service", hello.ServerName)
		}
		found, err := c.client.CoreV1().Secrets(parts[1]).Get(context.Background(), secret, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(found.Data["tls.crt"], found.Data["tls.key"])
		return &pair, err
	}}
}
