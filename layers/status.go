package main

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	admitted = corev1.PodConditionType("mlp-hub/Admitted")
	endNote  = "mlp-hub/end" // how the hub ended a job, as JSON
	waits    = "WaitsInQueue"
	jobWord  = "job "
)

func queued(pod *corev1.Pod) *corev1.PodCondition { return conditionOf(&pod.Status, admitted) }

func conditionOf(status *corev1.PodStatus, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range status.Conditions {
		if status.Conditions[i].Type == kind {
			return &status.Conditions[i]
		}
	}
	return nil
}

func setCondition(status *corev1.PodStatus, want corev1.PodCondition) {
	found := conditionOf(status, want.Type)
	if found == nil {
		want.LastTransitionTime = metav1.Now()
		status.Conditions = append(status.Conditions, want)
		return
	}
	if found.Status != want.Status {
		found.LastTransitionTime = metav1.Now()
	}
	found.Status, found.Reason, found.Message = want.Status, want.Reason, want.Message
}

// submitted says whether a pod went down before: its condition names its job.
func submitted(pod *corev1.Pod) bool {
	found := queued(pod)
	return found != nil && strings.HasPrefix(found.Message, jobWord+jobPrefix)
}

func jobIn(message, otherwise string) string {
	rest, found := strings.CutPrefix(message, jobWord)
	if name, _, _ := strings.Cut(rest, ":"); found && strings.HasPrefix(name, jobPrefix) {
		return name
	}
	return otherwise
}

// statusOf returns the status of a pod above by its job and its pod below; nil where it has that already.
func statusOf(up *corev1.Pod, claim Claim, address string) (*corev1.PodStatus, Turn) {
	status, turn := judged(up, claim, address)
	if status == nil || reflect.DeepEqual(*status, up.Status) {
		return nil, Turn{}
	}
	return status, turn
}

func judged(up *corev1.Pod, claim Claim, address string) (*corev1.PodStatus, Turn) {
	job, below := claim.job, claim.pod
	status := up.Status.DeepCopy()
	taken := suspended(job) && (up.Status.Phase == corev1.PodPending || below != nil && below.DeletionTimestamp != nil && podOver(below))
	if below != nil && !taken {
		return copied(status, job, below, address), Turn{}
	}
	began := up.Status.Phase == corev1.PodRunning
	failed := func(reason, message string) (*corev1.PodStatus, Turn) {
		ended(status, corev1.PodFailed, reason, message)
		return status, Turn{corev1.EventTypeWarning, reason, message}
	}
	if over := jobOver(job); over != nil {
		if over.Type == batchv1.JobComplete {
			ended(status, corev1.PodSucceeded, "", "")
			return status, Turn{}
		}
		return failed(over.Reason, over.Message)
	}
	if words, refused := job.Annotations[refusedNote]; refused {
		return failed("Refused", words)
	}
	if words, ends := endOf(job); ends {
		return failed("Failed", words)
	}
	if began && suspended(job) && job.Annotations[waitsNote] == "" {
		return nil, Turn{} // the hub stopped it, and is about to delete it, or to say why it waits again
	}
	if began && suspended(job) {
		setCondition(status, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "PreemptionByQueue", Message: "the queue took its place"})
		return failed("Preempted", "the queue of the compute cluster took its place: its team's quota, a job that is more important, or a lost node")
	}
	if began {
		return nil, Turn{} // its job makes another pod, or ends
	}
	words := job.Annotations[waitsNote]
	reason, shown := waits, words
	if shown == "" {
		shown = "waits for its turn in the queue of the compute cluster"
	}
	if !suspended(job) {
		reason, shown = "Admitted", "its place is given, its pod is made"
	}
	waiting(status, up, reason, shown)
	about := jobWord + job.Name + ": " + shown
	if suspended(job) {
		setCondition(status, corev1.PodCondition{Type: admitted, Status: corev1.ConditionFalse, Reason: waits, Message: about})
	} else {
		setCondition(status, corev1.PodCondition{Type: admitted, Status: corev1.ConditionTrue, Reason: reason, Message: about})
	}
	return status, Turn{corev1.EventTypeNormal, reason, about}
}

// endOf returns why the hub ended a job, where it has for good.
func endOf(job *batchv1.Job) (string, bool) {
	var found struct {
		Phase   string `json:"phase"`
		Failure *struct {
			Message string `json:"message"`
		} `json:"failure"`
	}
	text := job.Annotations[endNote]
	if text == "" || json.Unmarshal([]byte(text), &found) != nil || found.Phase != "failed" {
		return "", false
	}
	if found.Failure == nil || found.Failure.Message == "" {
		return "its job failed in the hub", true
	}
	return found.Failure.Message, true
}

// waiting is the status of a pod that has nothing below yet.
func waiting(status *corev1.PodStatus, up *corev1.Pod, reason, message string) {
	status.Phase = corev1.PodPending
	status.ContainerStatuses = nil
	for _, c := range up.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: bounded(message)}},
		})
	}
}

func ended(status *corev1.PodStatus, phase corev1.PodPhase, reason, message string) {
	status.Phase, status.Reason, status.Message = phase, reason, bounded(message)
	code := int32(0)
	if phase == corev1.PodFailed {
		code = 137
	}
	for i := range status.ContainerStatuses {
		c := &status.ContainerStatuses[i]
		if c.State.Terminated == nil {
			c.Ready = false
			c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, FinishedAt: metav1.Now()}}
		}
	}
	setCondition(status, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: reason})
}

// copied is the status of a pod that has one below.
func copied(status *corev1.PodStatus, job *batchv1.Job, below *corev1.Pod, address string) *corev1.PodStatus {
	from := below.Status.DeepCopy()
	own := slices.DeleteFunc(status.Conditions, func(c corev1.PodCondition) bool { return !strings.HasPrefix(string(c.Type), "mlp-hub/") })
	status.Phase, status.Reason, status.Message = from.Phase, from.Reason, from.Message
	status.PodIP, status.PodIPs, status.StartTime = from.PodIP, from.PodIPs, from.StartTime
	status.HostIP, status.HostIPs = address, []corev1.HostIP{{IP: address}}
	status.ContainerStatuses, status.InitContainerStatuses = from.ContainerStatuses, from.InitContainerStatuses
	status.Conditions = append(from.Conditions, own...)
	for i := range status.Conditions { // of another object
		status.Conditions[i].ObservedGeneration = 0
	}
	setCondition(status, corev1.PodCondition{Type: admitted, Status: corev1.ConditionTrue, Reason: "Admitted", Message: jobWord + job.Name + ": runs as pod " + below.Name})
	if len(from.ContainerStatuses) == 0 && from.Phase == corev1.PodPending {
		status.ContainerStatuses = nil
		for _, c := range below.Spec.Containers {
			status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
				Name: c.Name, Image: c.Image, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
			})
		}
	}
	return status
}
