package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiv1 "fleet.example.org/yachts/api/v1"
)

func TestACrewGetsAConfigMapAndAStatus(t *testing.T) {
	object := &apiv1.Crew{
		ObjectMeta: metav1.ObjectMeta{Name: "crew-sample", Namespace: "default"},
		Spec:       apiv1.CrewSpec{Message: "ahoy", Times: 2},
	}
	if err := k8sClient.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the status is written", func() bool {
		return k8sClient.Get(t.Context(), client.ObjectKeyFromObject(object), object) == nil && object.Status.Ready
	})
	var made corev1.ConfigMap
	if err := k8sClient.Get(t.Context(), client.ObjectKeyFromObject(object), &made); err != nil {
		t.Fatal(err)
	}
	if made.Data["text"] != "ahoy\nahoy" {
		t.Fatalf("the text is %q", made.Data["text"])
	}

	// It goes with its owner.
	if err := k8sClient.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the ConfigMap is collected", func() bool {
		return apierrors.IsNotFound(k8sClient.Get(t.Context(), client.ObjectKeyFromObject(object), &made))
	})
}

func TestACrewThatBreaksTheRulesIsRefused(t *testing.T) {
	err := k8sClient.Create(t.Context(), &apiv1.Crew{
		ObjectMeta: metav1.ObjectMeta{Name: "crew-wrong", Namespace: "default"},
		Spec:       apiv1.CrewSpec{Message: "ahoy", Times: 101},
	})
	if !apierrors.IsInvalid(err) {
		t.Fatalf("it is not refused: %v", err)
	}
}
