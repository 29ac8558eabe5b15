// Package v1 has the kind Foo of examples/hello-extended in version v1.
//
// +k8s:deepcopy-gen=package
// +groupName=hello.zeng.dev
package v1
