package main

import (
	"context"
	"log/slog"
	"maps"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

const (
	quotaName   = "mlp-limits"
	generations = 2 // the hub's ResourceQuota has room for pods that end beside their successors
	unlimited   = 1_000_000
)

// VirtualNode is the node above: its capacity is the team's quota below.
type VirtualNode struct {
	mu     sync.Mutex
	spec   *corev1.Node
	notify func(*corev1.Node)
	config *Config
	below  func(context.Context) error // whether the compute cluster answers
}

// capacityOf returns the capacity of the node of a quota. CPU of the quota is in shares, of the node in cores.
func capacityOf(c *Config, quota *corev1.ResourceQuota) corev1.ResourceList {
	found := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(unlimited, resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(unlimited<<30, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(unlimited<<30, resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(int64(c.maxPods), resource.DecimalSI),
	}
	if quota == nil {
		return corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(0, resource.DecimalSI)}
	}
	for name, amount := range quota.Spec.Hard {
		of, asked := strings.CutPrefix(string(name), "requests.")
		switch {
		case !asked:
		case of == "cpu":
			cores := float64(amount.MilliValue()) / generations / c.cpuShares
			found[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(math.Floor(cores)), resource.DecimalSI)
		case of == "memory":
			found[corev1.ResourceMemory] = *resource.NewQuantity(amount.Value()/generations, resource.BinarySI)
		case strings.Contains(of, "/"):
			found[corev1.ResourceName(of)] = *resource.NewQuantity(amount.Value()/generations, resource.DecimalSI)
		}
	}
	return found
}

func newNode(c *Config) *VirtualNode {
	spec := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: c.node, Labels: map[string]string{
			"type": "virtual-kubelet", "kubernetes.io/hostname": c.node, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
			"node.kubernetes.io/exclude-from-external-load-balancers": "true",
		}},
		Status: corev1.NodeStatus{
			NodeInfo:        corev1.NodeSystemInfo{KubeletVersion: "v1.34.0-mlp-layer", OperatingSystem: "linux", Architecture: "amd64"},
			Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: c.address}},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(c.port)}},
			Conditions:      []corev1.NodeCondition{condition(corev1.NodeReady, true, "Ready", "pods wait in the queue of team "+c.tenant)},
		},
	}
	if c.taint {
		spec.Spec.Taints = []corev1.Taint{{Key: nodeTaint, Effect: corev1.TaintEffectNoSchedule}}
	}
	spec.Status.Capacity = capacityOf(c, nil)
	spec.Status.Allocatable = spec.Status.Capacity
	return &VirtualNode{spec: spec, config: c}
}

func condition(kind corev1.NodeConditionType, holds bool, reason, message string) corev1.NodeCondition {
	status := corev1.ConditionFalse
	if holds {
		status = corev1.ConditionTrue
	}
	now := metav1.Now()
	return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now}
}

// Ping implements node.NodeProvider. The node is silent while the compute cluster does not answer.
func (n *VirtualNode) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return n.below(ctx)
}

// NotifyNodeStatus implements node.NodeProvider.
func (n *VirtualNode) NotifyNodeStatus(_ context.Context, tell func(*corev1.Node)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notify = tell
}

var _ node.NodeProvider = (*VirtualNode)(nil)

// handler shows the quota whenever it changes.
func (n *VirtualNode) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(found any) { n.show(found.(*corev1.ResourceQuota)) },
		UpdateFunc: func(_, found any) { n.show(found.(*corev1.ResourceQuota)) },
	}
}

func (n *VirtualNode) show(quota *corev1.ResourceQuota) {
	if quota.Name != quotaName {
		return
	}
	n.mu.Lock()
	capacity := capacityOf(n.config, quota)
	if maps.EqualFunc(capacity, n.spec.Status.Capacity, func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }) {
		n.mu.Unlock()
		return
	}
	for name := range n.spec.Status.Capacity { // the API server keeps what is left out
		if _, there := capacity[name]; !there {
			capacity[name] = resource.Quantity{}
		}
	}
	n.spec.Status.Capacity, n.spec.Status.Allocatable = capacity, capacity.DeepCopy()
	tell, now := n.notify, n.spec.DeepCopy()
	n.mu.Unlock()
	slog.Info("quota", "cpu", capacity.Cpu(), "memory", capacity.Memory())
	if tell != nil {
		tell(now)
	}
}

// current returns the node as it is registered.
func (n *VirtualNode) current() *corev1.Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.spec.DeepCopy()
}
