package main

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const atOnce = 16

// reconcile takes one step from the present state of both clusters.
func (a *Agent) reconcile(ctx context.Context) {
	v := a.view()
	var steps []func(context.Context) error
	a.mu.Lock()
	for uid, job := range a.made { // the watch has it now, or the pod is gone
		if _, there := v.claims[uid]; there || v.uppers[uid] == nil || time.Since(job.at) > unseen {
			delete(a.made, uid)
		}
	}
	for uid := range a.said {
		if v.uppers[uid] == nil {
			delete(a.said, uid)
			delete(a.retry, uid)
		}
	}
	a.mu.Unlock()
	busy := 0
	for _, job := range v.surplus(a.maxPods) {
		steps = append(steps, func(ctx context.Context) error {
			return a.end(ctx, job, "it ended, and newer ones are kept for their logs", nil)
		})
	}
	for _, job := range v.jobs {
		if job.DeletionTimestamp != nil {
			continue
		}
		if why, gone := v.ends(job); why != "" {
			steps = append(steps, func(ctx context.Context) error { return a.end(ctx, job, why, gone) })
			continue
		}
		if jobOver(job) == nil {
			busy += len(membersOf(job))
			if at, known := a.renewal(job); job.Annotations[dataNote] != "" && (!known || time.Now().After(at)) {
				steps = append(steps, func(ctx context.Context) error { return a.refresh(ctx, v, job) })
			}
		}
	}
	var candidates []*corev1.Pod
	for _, up := range v.uppers {
		claim, claimed := v.claims[up.UID]
		switch {
		case up.DeletionTimestamp != nil:
			if a.left(v, up, claim, claimed) {
				continue
			}
			steps = append(steps, func(ctx context.Context) error { return a.remove(ctx, up) })
		case podOver(up):
		case claimed:
			if claim.job.DeletionTimestamp != nil {
				continue
			}
			if status, turn := statusOf(up, claim, a.address); status != nil {
				steps = append(steps, func(ctx context.Context) error { return a.report(ctx, up, status, turn) })
			}
		case a.nameOf(up) != "":
		case submitted(up):
			steps = append(steps, func(ctx context.Context) error { return a.lost(ctx, up) })
		default:
			candidates = append(candidates, up)
		}
	}
	steps = append(steps, a.submissions(ctx, v, candidates, busy)...)
	runSteps(ctx, steps)
}

// runSteps takes steps side by side. A step that fails is tried at the next look.
func runSteps(ctx context.Context, steps []func(context.Context) error) {
	var all sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for _, step := range steps {
		slots <- struct{}{}
		all.Add(1)
		go func() {
			defer func() { <-slots; all.Done() }()
			limited, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			if err := step(limited); err != nil && ctx.Err() == nil {
				slog.Warn("tries again", "error", err)
			}
		}()
	}
	all.Wait()
}

func (a *Agent) nameOf(up *corev1.Pod) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.made[up.UID].name
}

// left says whether something of a pod that is being deleted may still run below.
func (a *Agent) left(v *View, up *corev1.Pod, claim Claim, claimed bool) bool {
	if claimed {
		return claim.pod == nil || !podOver(claim.pod) // until its job is gone from the watch
	}
	name := a.nameOf(up)
	if name == "" {
		name = jobName(a.owner, []string{string(up.UID)})
		if of := queued(up); of != nil && of.Message != "" {
			name = jobIn(of.Message, name)
		}
	} else {
		return true // the watch will show it
	}
	return slices.ContainsFunc(v.pods[name], func(pod *corev1.Pod) bool { return !podOver(pod) })
}

// end deletes a job with its pods. If watches say that a pod above is gone, the upper cluster is asked itself.
func (a *Agent) end(ctx context.Context, job *batchv1.Job, why string, gone []Member) error {
	for _, m := range gone {
		found, err := a.upper.CoreV1().Pods(m.namespace).Get(ctx, m.name, metav1.GetOptions{})
		if err == nil && string(found.UID) == m.uid && found.Spec.NodeName == a.node {
			return nil
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	slog.Info("ends", "job", job.Name, "why", why)
	background := metav1.DeletePropagationBackground
	err := a.lower.BatchV1().Jobs(a.namespace).Delete(ctx, job.Name, metav1.DeleteOptions{
		PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &job.UID},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// remove ends the deletion of a pod above: nothing of it is left below.
func (a *Agent) remove(ctx context.Context, up *corev1.Pod) error {
	now := int64(0)
	err := a.upper.CoreV1().Pods(up.Namespace).Delete(ctx, up.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &up.UID},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// lost reports a pod whose job somebody deleted below, such as the hub after it was cancelled there.
func (a *Agent) lost(ctx context.Context, up *corev1.Pod) error {
	name := jobIn(queued(up).Message, "")
	_, err := a.lower.BatchV1().Jobs(a.namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		return nil // the watch is behind
	}
	if !apierrors.IsNotFound(err) {
		return err
	}
	return a.fail(ctx, up, "Cancelled", "its job "+name+" was cancelled or deleted in the compute cluster")
}
