package v2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Foo has an image and two messages.
type Foo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              FooSpec    `json:"spec"`
	Status            *FooStatus `json:"status,omitempty"`
}

// FooSpec is the specification of a Foo.
type FooSpec struct {
	Image  string    `json:"image,omitempty"`
	Config FooConfig `json:"config"`
}

// FooConfig has the messages.
type FooConfig struct {
	Msg  string `json:"msg"`
	Msg1 string `json:"msg1,omitempty"`
}

// FooStatus is the observed state of a Foo.
type FooStatus struct {
	Phase string `json:"phase,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// FooList is a list of Foos.
type FooList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Foo `json:"items"`
}
