// sample-apiserver and its etcd, while a pod of the aggregation spec exists.
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// sampleAPIServer runs at most one pod's processes: they have fixed ports.
type sampleAPIServer struct {
	client   *kubernetes.Clientset
	config   *rest.Config
	address  string
	programs string
	dir      string

	pod       types.UID
	processes []*exec.Cmd
}

// follow starts and stops the processes until the context ends.
func (s *sampleAPIServer) follow(ctx context.Context) {
	defer s.stop()
	for {
		if err := s.step(ctx); err != nil && ctx.Err() == nil {
			log.Print("sample-apiserver: ", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func (s *sampleAPIServer) step(ctx context.Context) error {
	selector := metav1.ListOptions{LabelSelector: "app=sample-apiserver,apiserver=true"}
	pods, err := s.client.CoreV1().Pods("").List(ctx, selector)
	if err != nil {
		return err
	}
	var wanted *corev1.Pod
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil {
			continue
		}
		if wanted == nil || pod.UID == s.pod {
			wanted = pod
		}
	}
	if wanted != nil && wanted.UID == s.pod {
		return nil
	}
	s.stop()
	if wanted == nil {
		return nil
	}
	if err := s.start(ctx, wanted); err != nil {
		s.stop()
		return err
	}
	return nil
}

// start does what a kubelet would: files of the secret and of the service account, then the containers.
func (s *sampleAPIServer) start(ctx context.Context, pod *corev1.Pod) error {
	dir, err := os.MkdirTemp(s.dir, "sample-apiserver-")
	if err != nil {
		return err
	}
	secret, err := s.client.CoreV1().Secrets(pod.Namespace).Get(ctx, "sample-apiserver-secret", metav1.GetOptions{})
	if err != nil {
		return err
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.WriteFile(file("tls.crt"), secret.Data["tls.crt"], 0o600),
		os.WriteFile(file("tls.key"), secret.Data["tls.key"], 0o600),
	); err != nil {
		return err
	}
	account := pod.Spec.ServiceAccountName
	token, err := s.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, account,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := clientcmd.WriteToFile(s.kubeconfig(token.Status.Token), file("kubeconfig")); err != nil {
		return err
	}
	const client, peer = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
	if err := s.run(dir, "etcd", "--data-dir="+file("etcd"), "--unsafe-no-fsync", "--log-level=error",
		"--listen-client-urls="+client, "--advertise-client-urls="+client, "--listen-peer-urls="+peer,
		"--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer); err != nil {
		return err
	}
	if err := s.run(dir, "sample-apiserver", "--etcd-servers="+client, "--bind-address="+s.address, "--secure-port=443",
		"--tls-cert-file="+file("tls.crt"), "--tls-private-key-file="+file("tls.key"),
		"--kubeconfig="+file("kubeconfig"), "--authentication-kubeconfig="+file("kubeconfig"),
		"--authorization-kubeconfig="+file("kubeconfig")); err != nil {
		return err
	}
	s.pod = pod.UID
	return nil
}

func (s *sampleAPIServer) run(dir, name string, args ...string) error {
	output, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		return err
	}
	defer output.Close()
	command := exec.Command(filepath.Join(s.programs, name), args...)
	command.Stdout, command.Stderr = output, output
	if err := command.Start(); err != nil {
		return err
	}
	s.processes = append(s.processes, command)
	return nil
}

func (s *sampleAPIServer) stop() {
	for _, process := range s.processes {
		process.Process.Kill()
		process.Wait()
	}
	s.processes, s.pod = nil, ""
}

// kubeconfig returns the administrator's kubeconfig with a token instead of its credentials.
func (s *sampleAPIServer) kubeconfig(token string) clientcmdapi.Config {
	made := clientcmdapi.NewConfig()
	made.Clusters["it"] = &clientcmdapi.Cluster{
		Server:                   s.config.Host,
		CertificateAuthority:     s.config.CAFile,
		CertificateAuthorityData: s.config.CAData,
	}
	made.AuthInfos["it"] = &clientcmdapi.AuthInfo{Token: token}
	made.Contexts["it"] = &clientcmdapi.Context{Cluster: "it", AuthInfo: "it"}
	made.CurrentContext = "it"
	return *made
}
