package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fail ends a pod above for good.
func (a *Agent) fail(ctx context.Context, up *corev1.Pod, reason, message string) error {
	status := up.Status.DeepCopy()
	status.Phase, status.Reason, status.Message = corev1.PodFailed, reason, bounded(message)
	for i := range status.ContainerStatuses {
		c := &status.ContainerStatuses[i]
		if c.State.Terminated == nil {
			c.Ready = false
			c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: reason, Message: bounded(message), FinishedAt: metav1.Now()}}
		}
	}
	setCondition(status, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: reason})
	return a.report(ctx, up, status, Turn{corev1.EventTypeWarning, reason, message})
}

func bounded(text string) string {
	if len(text) > 1000 {
		return strings.ToValidUTF8(text[:1000], "") + " ..."
	}
	return text
}

// Turn is an event about a pod's place in the queue.
type Turn struct{ kind, reason, message string }

// report writes the status of a pod above, and tells about its turn when that changes.
func (a *Agent) report(ctx context.Context, up *corev1.Pod, status *corev1.PodStatus, turn Turn) error {
	changed := up.DeepCopy()
	changed.Status = *status
	if _, err := a.upper.CoreV1().Pods(up.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{}); err != nil {
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil // the watch brings what is there now
		}
		return fmt.Errorf("status of %s/%s: %w", up.Namespace, up.Name, err)
	}
	a.mu.Lock()
	text := turn.reason + " " + turn.message
	news := turn.reason != "" && a.said[up.UID] != text
	a.said[up.UID] = text
	a.mu.Unlock()
	if news {
		a.events.Event(up, turn.kind, turn.reason, bounded(turn.message))
	}
	return nil
}

// refusedBelow returns the words of the compute cluster where it refuses a job for good.
func refusedBelow(err error) (string, bool) {
	var word refusal
	if errors.As(err, &word) {
		return string(word), true
	}
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err) {
		return err.Error(), true
	}
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "denied request") {
		_, words, _ := strings.Cut(err.Error(), "denied request: ")
		return words, true
	}
	return "", false
}

// waits shows why pods are not down yet.
func (a *Agent) waits(ctx context.Context, pods []*corev1.Pod, words string) error {
	a.mu.Lock()
	a.retry[pods[0].UID] = time.Now().Add(lookAgain / 2)
	a.mu.Unlock()
	for _, pod := range pods {
		if found := queued(pod); found != nil && found.Message == words {
			continue
		}
		status := pod.Status.DeepCopy()
		waiting(status, pod, "Waits", words)
		setCondition(status, corev1.PodCondition{Type: admitted, Status: corev1.ConditionFalse, Reason: "Waits", Message: words})
		if err := a.report(ctx, pod, status, Turn{corev1.EventTypeNormal, "Waits", words}); err != nil {
			return err
		}
	}
	return nil
}

// cannot shows why pods could not go down: for good, or until it is tried again.
func (a *Agent) cannot(ctx context.Context, pods []*corev1.Pod, why error) error {
	var word missing
	if errors.As(why, &word) {
		return a.waits(ctx, pods, string(word))
	}
	if words, refused := refusedBelow(why); refused {
		for _, pod := range pods {
			if err := a.fail(ctx, pod, "Refused", words); err != nil {
				return err
			}
		}
		return nil
	}
	slog.Warn("cannot bring down", "pod", pods[0].Namespace+"/"+pods[0].Name, "error", why)
	return a.waits(ctx, pods, "cannot go down yet: "+bounded(why.Error()))
}
