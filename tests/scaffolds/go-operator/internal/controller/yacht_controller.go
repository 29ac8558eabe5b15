package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	apiv1 "fleet.example.org/yachts/api/v1"
)

// YachtReconciler reconciles a Yacht object.
type YachtReconciler struct {
	client.Client
	Scheme *runtime.Scheme
}

// +kubebuilder:rbac:groups=fleet.example.org,resources=yachts,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=fleet.example.org,resources=yachts/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=fleet.example.org,resources=yachts/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;update;patch;delete

// Reconcile writes the ConfigMap of an object, and the object's status.
func (r *YachtReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var object apiv1.Yacht
	if err := r.Get(ctx, request.NamespacedName, &object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !object.DeletionTimestamp.IsZero() {
		// The garbage collector deletes the ConfigMap.
		return ctrl.Result{}, nil
	}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: object.Name, Namespace: object.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, configMap, func() error {
		configMap.Data = map[string]string{"text": text(object.Spec.Message, object.Spec.Times)}
		return controllerutil.SetControllerReference(&object, configMap, r.Scheme)
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	status := apiv1.YachtStatus{Ready: true, ObservedGeneration: object.Generation}
	if object.Status == status {
		return ctrl.Result{}, nil
	}
	object.Status = status
	return ctrl.Result{}, r.Status().Update(ctx, &object)
}

// SetupWithManager sets up the controller with the Manager.
func (r *YachtReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&apiv1.Yacht{}).
		Owns(&corev1.ConfigMap{}).
		Named("yacht").
		Complete(r)
}
