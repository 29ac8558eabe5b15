package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiv1 "fleet.example.org/yachts/api/v1"
)

func TestAYachtGetsAConfigMapAndAStatus(t *testing.T) {
	object := &apiv1.Yacht{
		ObjectMeta: metav1.ObjectMeta{Name: "yacht-sample", Namespace: "default"},
		Spec:       apiv1.YachtSpec{Message: "ahoy", Times: 2},
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

func TestAYachtThatBreaksTheRulesIsRefused(t *testing.T) {
	err := k8sClient.Create(t.Context(), &apiv1.Yacht{
		ObjectMeta: metav1.ObjectMeta{Name: "yacht-wrong", Namespace: "default"},
		Spec:       apiv1.YachtSpec{Message: "ahoy", Times: 101},
	})
	if !apierrors.IsInvalid(err) {
		t.Fatalf("it is not refused: %v", err)
	}
}
