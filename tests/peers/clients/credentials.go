package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// whoAmI prints the user that the server sees. Without a kubeconfig it uses the configuration of a pod: the address in
// the environment, the token and the CA in /var/run/secrets.
func whoAmI(*flag.FlagSet) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, config *rest.Config) error {
		clients, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		review := &authenticationv1.SelfSubjectReview{}
		review, err = clients.AuthenticationV1().SelfSubjectReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		user := review.Status.UserInfo
		say(map[string]any{"type": "USER", "username": user.Username, "groups": user.Groups, "extra": user.Extra})
		return nil
	}
}

// metrics serves the metrics of a controller-runtime manager to users that the server authenticates and authorizes, and
// asks for them as several users.
func metrics(flags *flag.FlagSet) func(context.Context, *rest.Config) error {
	allowed := flags.String("allowed", "", "file with a token that may read metrics")
	refused := flags.String("refused", "", "file with a token that may not")
	return func(ctx context.Context, config *rest.Config) error {
		ctrl.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(os.Stderr))))
		address, err := freeAddress()
		if err != nil {
			return err
		}
		manager, err := ctrl.NewManager(config, ctrl.Options{Metrics: server.Options{
			BindAddress: address, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization,
		}})
		if err != nil {
			return err
		}
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- manager.Start(running) }()
		failed := false
		expect := func(what string, code int, token string) {
			err := until(ctx, func(ctx context.Context) (bool, error) {
				found, body, err := scrape(ctx, address, token)
				if err != nil {
					// The server may not listen yet.
					return false, nil
				}
				if found != code {
					return false, fmt.Errorf("%d instead of %d: %s", found, code, body)
				}
				if code == http.StatusOK && !strings.Contains(body, "go_goroutines") {
					return false, errors.New("the answer has no metrics")
				}
				return true, nil
			})
			line := step{Step: what, OK: err == nil}
			if err != nil {
				line.Message, failed = err.Error(), true
			}
			say(line)
		}
		read := func(path string) string {
			token, err := os.ReadFile(path)
			if err != nil {
				fail(err)
			}
			return strings.TrimSpace(string(token))
		}
		expect("a user with the right", http.StatusOK, read(*allowed))
		expect("a user without the right", http.StatusForbidden, read(*refused))
		expect("no token", http.StatusUnauthorized, "")
		// The filter takes the error in a review for a failure of its own.
		expect("a bad token", http.StatusInternalServerError, "nonsense")
		stop()
		if err := <-ended; err != nil {
			return err
		}
		if failed {
			return errFailed
		}
		return nil
	}
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

// scrape returns the code and the body of an answer.
func scrape(ctx context.Context, address, token string) (int, string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/metrics", nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// The manager signs its own certificate.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body), err
}
