package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
)

const (
	callTimeout = 10 * time.Second
	lookAgain   = 2 * time.Second       // what no watch tells: PodGroups above, data that is missing, tokens
	together    = 10 * time.Millisecond // news that come together are worked on together
	unseen      = 30 * time.Second      // a created job that no watch shows by then was deleted at once
)

// fresh is a job that was just created.
type fresh struct {
	name string
	at   time.Time
}

// Agent keeps the jobs below equal to the pods above. All state is in the two clusters: an agent that
// was killed at any point is continued by the next one.
type Agent struct {
	*Config
	upper, lower kubernetes.Interface
	lowerConfig  *rest.Config
	groups       dynamic.Interface
	owner        string
	events       record.EventRecorder
	uppers, jobs cache.Indexer
	lowers       cache.Indexer
	wake         chan struct{}

	mu      sync.Mutex
	made    map[types.UID]fresh     // jobs of pods, until their watch shows them
	said    map[types.UID]string    // the last event about a pod's turn
	retry   map[types.UID]time.Time // when a pod that could not go down is tried again
	renew   map[types.UID]time.Time // when tokens of a job are replaced
	started time.Time
}

// Run works until the context ends.
func (a *Agent) Run(ctx context.Context) error {
	a.made, a.said = map[types.UID]fresh{}, map[types.UID]string{}
	a.retry, a.renew = map[types.UID]time.Time{}, map[types.UID]time.Time{}
	a.wake, a.started = make(chan struct{}, 1), time.Now()
	system, err := a.upper.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("the upper cluster's identity: %w", err)
	}
	a.owner = ownerID(string(system.UID), a.node)
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: a.upper.CoreV1().Events("")})
	a.events = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "mlp-layer", Host: a.node})

	virtual := newNode(a.Config)
	virtual.below = func(ctx context.Context) error {
		_, err := a.lower.CoreV1().ResourceQuotas(a.namespace).Get(ctx, quotaName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	if err := a.watch(ctx, virtual); err != nil {
		return err
	}
	served := make(chan error, 2)
	go func() { served <- a.serve(ctx) }()
	controller, err := node.NewNodeController(virtual, virtual.current(), a.upper.CoreV1().Nodes(),
		node.WithNodeEnableLeaseV1(nodeutil.NodeLeaseV1Client(a.upper), node.DefaultLeaseDuration),
		node.WithNodeStatusUpdateInterval(30*time.Second),
		node.WithNodeStatusUpdateErrorHandler(func(ctx context.Context, err error) error {
			if !apierrors.IsNotFound(err) {
				return err
			}
			_, err = a.upper.CoreV1().Nodes().Create(ctx, virtual.current(), metav1.CreateOptions{})
			return err
		}))
	if err != nil {
		return err
	}
	go func() { served <- controller.Run(ctx) }()
	go a.loop(ctx)
	slog.Info("works", "cluster", a.owner, "node", a.node)
	select {
	case <-ctx.Done():
		return nil
	case err := <-served:
		return err
	}
}

// watch fills the copies of both clusters, and returns once they are whole.
func (a *Agent) watch(ctx context.Context, virtual *VirtualNode) error {
	above := informers.NewSharedInformerFactoryWithOptions(a.upper, 0, nodeutil.PodInformerFilter(a.node))
	chosen := func(selector string) informers.SharedInformerOption {
		return informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = selector })
	}
	named := informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = "metadata.name=" + quotaName })
	within := informers.WithNamespace(a.namespace)
	work := informers.NewSharedInformerFactoryWithOptions(a.lower, 0, within, chosen(ownerLabel+"="+a.owner))
	pods := informers.NewSharedInformerFactoryWithOptions(a.lower, 0, within, chosen(podLabel+"="+a.owner))
	quota := informers.NewSharedInformerFactoryWithOptions(a.lower, 0, within, named)
	told := informers.NewSharedInformerFactoryWithOptions(a.lower, 0, within)
	news := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { a.look() }, UpdateFunc: func(_, _ any) { a.look() }, DeleteFunc: func(any) { a.look() },
	}
	upperPods, lowerJobs, lowerPods := above.Core().V1().Pods().Informer(), work.Batch().V1().Jobs().Informer(), pods.Core().V1().Pods().Informer()
	quotas, lowerEvents := quota.Core().V1().ResourceQuotas().Informer(), told.Core().V1().Events().Informer()
	a.uppers, a.jobs, a.lowers = upperPods.GetIndexer(), lowerJobs.GetIndexer(), lowerPods.GetIndexer()
	var synced []cache.InformerSynced
	for _, each := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{upperPods, news}, {lowerJobs, news}, {lowerPods, news}, {quotas, virtual.handler()},
		{lowerEvents, cache.ResourceEventHandlerFuncs{
			AddFunc: func(found any) { a.pass(found.(*corev1.Event)) }, UpdateFunc: func(_, found any) { a.pass(found.(*corev1.Event)) },
		}},
	} {
		registered, err := each.informer.AddEventHandler(each.handler)
		if err != nil {
			return err
		}
		synced = append(synced, registered.HasSynced)
		go each.informer.RunWithContext(ctx)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return ctx.Err()
	}
	return nil
}

func (a *Agent) look() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

func (a *Agent) loop(ctx context.Context) {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-a.wake:
			time.Sleep(together)
		case <-tick.C:
		}
		a.reconcile(ctx)
	}
}

func listed[T any](from cache.Indexer) []*T {
	all := from.List()
	found := make([]*T, len(all))
	for i, each := range all {
		found[i] = each.(*T)
	}
	return found
}

// pass shows an event about a pod below as one about its pod above.
func (a *Agent) pass(event *corev1.Event) {
	about := event.InvolvedObject
	at := event.LastTimestamp.Time
	if event.Series != nil {
		at = event.Series.LastObservedTime.Time
	} else if at.IsZero() {
		at = event.EventTime.Time
	}
	if about.Kind != "Pod" || !strings.HasPrefix(about.Name, jobPrefix+a.owner+"-") || at.Before(a.started.Truncate(time.Second)) {
		return
	}
	found, there, err := a.lowers.GetByKey(a.namespace + "/" + about.Name)
	if err != nil || !there {
		return
	}
	pod := found.(*corev1.Pod)
	job, there, err := a.jobs.GetByKey(a.namespace + "/" + pod.Labels[batchv1.JobNameLabel])
	if err != nil || !there {
		return
	}
	members := membersOf(job.(*batchv1.Job))
	if i := indexOf(pod); i < len(members) {
		m := members[i]
		ref := &corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: m.namespace, Name: m.name, UID: types.UID(m.uid)}
		a.events.Event(ref, event.Type, event.Reason, event.Message)
	}
}
