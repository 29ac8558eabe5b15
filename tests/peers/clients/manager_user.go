package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const leaseName = "peers-manager"

// user is a client that uses the manager.
type user struct {
	client    client.Client
	ctx       context.Context
	namespace string
	failed    bool
}

func (u *user) expect(what string, err error) bool {
	u.failed = u.failed || err != nil
	line := step{Step: what, OK: err == nil}
	if err != nil {
		line.Message = err.Error()
	}
	say(line)
	return err == nil
}

// plays runs one Greeting from creation to deletion.
func (u *user) plays(manager ctrl.Manager, collects bool, within time.Duration) {
	select {
	case <-manager.Elected():
		u.expect("manager leads", u.leads())
	case <-u.ctx.Done():
		u.expect("manager leads", u.ctx.Err())
		return
	}
	greeting := &Greeting{Spec: GreetingSpec{Text: "ahoy"}}
	greeting.Namespace, greeting.Name = u.namespace, "hello"
	invalid := greeting.DeepCopyObject().(*Greeting)
	invalid.Spec.Text = ""
	if err := u.client.Create(u.ctx, invalid); !apierrors.IsInvalid(err) {
		u.expect("greeting without a text refused", fmt.Errorf("instead: %w", err))
	}
	if !u.expect("greeting created", u.client.Create(u.ctx, greeting)) {
		return
	}
	key := client.ObjectKeyFromObject(greeting)
	written := &corev1.ConfigMap{}
	u.expect("configmap written", u.sees(key, written, "ahoy"))
	if owners := written.OwnerReferences; len(owners) != 1 || owners[0].UID != greeting.UID {
		u.expect("configmap owned", fmt.Errorf("owners are %v", owners))
	}
	u.expect("status said", u.told(key, greeting, "ahoy"))
	u.expect("event recorded", u.hears(greeting))

	// The Secret is created later and changes: the index finds the greetings that need it.
	before := greeting.DeepCopyObject().(*Greeting)
	greeting.Spec.VoiceFrom = "voice"
	u.expect("greeting changed", u.client.Patch(u.ctx, greeting, client.MergeFrom(before)))
	u.expect("voice missing", u.told(key, greeting, ""))
	voice := &corev1.Secret{StringData: map[string]string{"voice": "captain"}}
	voice.Namespace, voice.Name = u.namespace, "voice"
	u.expect("secret created", u.client.Create(u.ctx, voice))
	u.expect("configmap changed", u.sees(key, written, "captain: ahoy"))
	voice.StringData = map[string]string{"voice": "mate"}
	u.expect("secret changed", u.client.Update(u.ctx, voice))
	u.expect("configmap changed again", u.sees(key, written, "mate: ahoy"))
	u.expect("status changed", u.told(key, greeting, "mate: ahoy"))

	first := written.UID
	u.expect("configmap deleted", u.client.Delete(u.ctx, written))
	u.expect("configmap written again", u.sees(key, written, "mate: ahoy"))
	if written.UID == first {
		u.expect("configmap is a new one", errors.New("it has the uid of the old one"))
	}
	u.expect("greeting deleted", u.client.Delete(u.ctx, greeting))
	u.expect("finalizer removed", u.vanishes(key, greeting, within))
	if collects {
		u.expect("configmap collected", u.vanishes(key, written, within))
	} else {
		u.expect("configmap deleted", client.IgnoreNotFound(u.client.Delete(u.ctx, written)))
	}
	u.expect("secret deleted", u.client.Delete(u.ctx, voice))
}

func (u *user) lease() (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	return lease, u.client.Get(u.ctx, client.ObjectKey{Namespace: u.namespace, Name: leaseName}, lease)
}

func (u *user) leads() error {
	lease, err := u.lease()
	if err == nil && (lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "") {
		return errors.New("nobody holds the lease")
	}
	return err
}

// released checks that the manager released its lease, so that the next one does not have to wait.
func (u *user) released() error {
	lease, err := u.lease()
	if err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" {
		return fmt.Errorf("%s still holds it", *lease.Spec.HolderIdentity)
	}
	return err
}

func (u *user) sees(key client.ObjectKey, written *corev1.ConfigMap, text string) error {
	return until(u.ctx, func(ctx context.Context) (bool, error) {
		*written = corev1.ConfigMap{}
		err := u.client.Get(ctx, key, written)
		return err == nil && written.Data["text"] == text, client.IgnoreNotFound(err)
	})
}

// told waits for a status of the present generation with a matching condition.
func (u *user) told(key client.ObjectKey, greeting *Greeting, said string) error {
	return until(u.ctx, func(ctx context.Context) (bool, error) {
		*greeting = Greeting{}
		err := u.client.Get(ctx, key, greeting)
		status := &greeting.Status
		ready := meta.IsStatusConditionTrue(status.Conditions, "Ready")
		return status.Said == said && status.ObservedGeneration == greeting.Generation && ready == (said != ""), err
	})
}

func (u *user) hears(greeting *Greeting) error {
	return until(u.ctx, func(ctx context.Context) (bool, error) {
		list := &eventsv1.EventList{}
		err := u.client.List(ctx, list, client.InNamespace(u.namespace))
		for _, event := range list.Items {
			if event.Regarding.UID == greeting.UID && event.Reason == "Said" && event.Related != nil {
				return true, nil
			}
		}
		return false, err
	})
}

func (u *user) vanishes(key client.ObjectKey, object client.Object, within time.Duration) error {
	return untilWithin(u.ctx, within, func(ctx context.Context) (bool, error) {
		err := u.client.Get(ctx, key, object)
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}
