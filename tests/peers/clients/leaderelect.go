package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

// leaderElect takes part in an election. It prints LEADER for each new leader, LEADING when it is the leader itself,
// EVENT when its recorded event can be read, and STOPPED at its end.
func leaderElect(flags *flag.FlagSet) func(context.Context, *rest.Config) error {
	identity := flags.String("identity", fmt.Sprintf("peer-%d", os.Getpid()), "who takes part")
	namespace := flags.String("namespace", "default", "namespace of the lease")
	name := flags.String("name", "peers", "name of the lease")
	length := flags.Duration("for", 5*time.Second, "how long to take part")
	lease := flags.Duration("lease", 3*time.Second, "duration of the lease; it is renewed within two thirds and retried every sixth")
	keep := flags.Bool("keep", false, "do not release the lease at the end, like a leader that dies")

	return func(ctx context.Context, config *rest.Config) error {
		client, err := kubernetes.NewForConfig(asProtobuf(config))
		if err != nil {
			return err
		}
		broadcaster := record.NewBroadcaster()
		defer broadcaster.Shutdown()
		broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events(*namespace)})
		recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "peers"})

		ctx, stop := context.WithTimeout(ctx, *length)
		defer stop()
		lines := func(kind, who string) { say(map[string]string{"type": kind, "identity": who}) }
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Namespace: *namespace, Name: *name},
				Client:     client.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: *identity, EventRecorder: recorder},
			},
			Name:            *name,
			LeaseDuration:   *lease,
			RenewDeadline:   *lease * 2 / 3,
			RetryPeriod:     *lease / 6,
			ReleaseOnCancel: !*keep,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					lines("LEADING", *identity)
					if err := recorded(ctx, client, *namespace, *name, *identity); err != nil {
						say(notice{Type: "ERROR", Message: err.Error()})
					} else {
						lines("EVENT", *identity)
					}
				},
				OnStoppedLeading: func() { lines("STOPPED", *identity) },
				OnNewLeader:      func(who string) { lines("LEADER", who) },
			},
		})
		if err != nil {
			return err
		}
		elector.Run(ctx)
		return nil
	}
}

// recorded waits for the event that names the new leader.
func recorded(ctx context.Context, client kubernetes.Interface, namespace, name, identity string) error {
	return until(ctx, func(ctx context.Context) (bool, error) {
		found, err := client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{
			FieldSelector: "involvedObject.kind=Lease,reason=LeaderElection,involvedObject.name=" + name,
		})
		if err != nil {
			return false, err
		}
		for _, event := range found.Items {
			if event.Message == identity+" became leader" {
				return true, nil
			}
		}
		return false, nil
	})
}
