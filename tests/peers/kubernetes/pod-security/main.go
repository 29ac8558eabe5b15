// Prints what k8s.io/pod-security-admission finds in the pods of its own test fixtures: one JSON line for each pod and
// policy. The argument is the folder with the fixtures: LEVEL/VERSION/{pass,fail}/NAME.yaml.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

// A finding is the result of policies on one pod.
type finding struct {
	Fixture  string            `json:"fixture"`
	Level    string            `json:"level"`
	Version  string            `json:"version"`
	Passes   bool              `json:"passes"`
	Findings map[string]result `json:"findings"`
	Pod      json.RawMessage   `json:"pod"`
}

type result struct {
	Reasons string `json:"reasons"`
	Details string `json:"details"`
}

func main() {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	must(err)
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	root := os.Args[1]
	must(filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".yaml") {
			return err
		}
		name, err := filepath.Rel(root, path)
		must(err)
		parts := strings.Split(filepath.ToSlash(name), "/")
		text, err := os.ReadFile(path)
		must(err)
		raw, err := yaml.YAMLToJSON(text)
		must(err)
		var pod corev1.Pod
		must(json.Unmarshal(raw, &pod))
		// The fixtures are meant for a server, which sets this default.
		for i := range pod.Spec.Volumes {
			if volume := &pod.Spec.Volumes[i]; volume.VolumeSource == (corev1.VolumeSource{}) {
				volume.EmptyDir = &corev1.EmptyDirVolumeSource{}
			}
		}
		raw, err = json.Marshal(pod)
		must(err)
		line := finding{
			Fixture: name, Level: parts[0], Version: parts[1], Passes: parts[2] == "pass",
			Findings: map[string]result{}, Pod: raw,
		}
		for _, level := range []api.Level{api.LevelBaseline, api.LevelRestricted} {
			for _, version := range []string{parts[1], "v1.0", "v1.24", "latest"} {
				parsed, err := api.ParseVersion(version)
				must(err)
				of := api.LevelVersion{Level: level, Version: parsed}
				found := policy.AggregateCheckResults(evaluator.EvaluatePod(of, &pod.ObjectMeta, &pod.Spec))
				line.Findings[fmt.Sprint(of)] = result{found.ForbiddenReason(), found.ForbiddenDetail()}
			}
		}
		return encoder.Encode(line)
	}))
	must(out.Flush())
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
