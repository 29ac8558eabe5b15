// Command virtctl is the client of KubeVirt, as published.
package main

import (
	"os"

	"kubevirt.io/kubevirt/pkg/virtctl"
)

func main() {
	os.Exit(virtctl.Execute())
}
