package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Notes by which pods say that they are a gang.
const (
	volcanoNote  = "scheduling.k8s.io/group-name"
	coschedLabel = "scheduling.x-k8s.io/pod-group"
	gangNote     = "mlp-hub/gang"
	gangSizeNote = "mlp-hub/gang-size"
	mpiJobLabel  = "training.kubeflow.org/job-name"
	mpiRoleLabel = "training.kubeflow.org/job-role"
)

var (
	volcanoGroups = schema.GroupVersionResource{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "podgroups"}
	coschedGroups = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
)

// gangOf returns the gang of a pod, empty where it has none.
func gangOf(pod *corev1.Pod) string {
	for _, each := range []struct{ kind, name string }{
		{"volcano", pod.Annotations[volcanoNote]}, {"coscheduling", pod.Labels[coschedLabel]}, {"gang", pod.Annotations[gangNote]},
	} {
		if each.name != "" {
			return pod.Namespace + "/" + each.kind + "/" + each.name
		}
	}
	return ""
}

// size asks how many pods a gang has at least.
func (a *Agent) size(ctx context.Context, gang string, pods []*corev1.Pod) (int, error) {
	parts := strings.SplitN(gang, "/", 3)
	if parts[1] == "gang" {
		n, err := strconv.Atoi(pods[0].Annotations[gangSizeNote])
		if err != nil || n < 1 {
			return 0, refusal(fmt.Sprintf("%s: %q is not a number of pods; write one from 1 on beside %s", gangSizeNote, pods[0].Annotations[gangSizeNote], gangNote))
		}
		return n, nil
	}
	of := volcanoGroups
	if parts[1] == "coscheduling" {
		of = coschedGroups
	}
	found, err := a.groups.Resource(of).Namespace(parts[0]).Get(ctx, parts[2], metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return 0, missing("waits for PodGroup " + parts[2])
	}
	if err != nil {
		return 0, err
	}
	n, _, err := unstructured.NestedInt64(found.Object, "spec", "minMember")
	if err != nil || n < 1 {
		n = 1
	}
	return int(n), nil
}

// submissions returns the steps that bring pods down: alone, or as a gang once all of it is here.
func (a *Agent) submissions(ctx context.Context, v *View, candidates []*corev1.Pod, busy int) []func(context.Context) error {
	slices.SortFunc(candidates, func(x, y *corev1.Pod) int {
		if c := x.CreationTimestamp.Compare(y.CreationTimestamp.Time); c != 0 {
			return c
		}
		return natural(x.Namespace+"/"+x.Name, y.Namespace+"/"+y.Name)
	})
	running := map[string]bool{} // gangs that went down: pods that come later go alone
	for _, job := range v.jobs {
		if jobOver(job) == nil && job.DeletionTimestamp == nil {
			running[job.Annotations[groupNote]] = true
		}
	}
	var order []string
	units := map[string][]*corev1.Pod{}
	for _, up := range candidates {
		key := gangOf(up)
		if key == "" || running[key] {
			key = "pod/" + string(up.UID)
		}
		if units[key] == nil {
			order = append(order, key)
		}
		units[key] = append(units[key], up)
	}
	var steps []func(context.Context) error
	beyond := 0 // pods that the node has no room for: however many they are, few are told so
	for _, key := range order {
		pods := units[key]
		if a.later(pods[0].UID) {
			continue
		}
		if len(pods) > a.maxPods-busy {
			if beyond += len(pods); beyond > a.maxPods {
				break
			}
			steps = append(steps, func(ctx context.Context) error {
				return a.waits(ctx, pods, fmt.Sprintf("the node takes at most %d pods at a time", a.maxPods))
			})
			continue
		}
		if strings.HasPrefix(key, "pod/") {
			busy++
			steps = append(steps, func(ctx context.Context) error { return a.bring(ctx, v, pods, "") })
			continue
		}
		limited, cancel := context.WithTimeout(ctx, callTimeout)
		n, err := a.size(limited, key, pods)
		cancel()
		switch {
		case err != nil:
			steps = append(steps, func(ctx context.Context) error { return a.cannot(ctx, pods, err) })
		case len(pods) < n:
			steps = append(steps, func(ctx context.Context) error {
				return a.waits(ctx, pods, fmt.Sprintf("waits for its gang: %d of %d pods are on this node", len(pods), n))
			})
		default:
			busy += len(pods)
			slices.SortFunc(pods, func(x, y *corev1.Pod) int { return natural(x.Name, y.Name) })
			steps = append(steps, func(ctx context.Context) error { return a.bring(ctx, v, pods, key) })
		}
	}
	return steps
}

// natural compares names so that worker-2 comes before worker-10.
func natural(x, y string) int {
	digits := func(r rune) bool { return r >= '0' && r <= '9' }
	trunkX, trunkY := strings.TrimRightFunc(x, digits), strings.TrimRightFunc(y, digits)
	if trunkX == trunkY {
		if c := len(x) - len(y); c != 0 {
			return c
		}
	}
	return strings.Compare(x, y)
}

func (a *Agent) later(uid types.UID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Now().Before(a.retry[uid])
}
