// Package v2 has the kind Foo of examples/hello-extended in version v2.
//
// +k8s:deepcopy-gen=package
// +groupName=hello.zeng.dev
package v2
