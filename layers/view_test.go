package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func jobOf(name string, age time.Duration, pods ...*corev1.Pod) *batchv1.Job {
	yes := true
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("job-" + name), CreationTimestamp: metav1.NewTime(time.Unix(10_000, 0).Add(-age)),
			Annotations: map[string]string{membersNote: writeMembers(pods)},
		},
		Spec: batchv1.JobSpec{Suspend: &yes},
	}
}

func rankOf(job *batchv1.Job, index string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: job.Name + "-" + index, Labels: map[string]string{batchv1.JobNameLabel: job.Name},
			Annotations: map[string]string{batchv1.JobCompletionIndexAnnotation: index},
		},
		Status: corev1.PodStatus{Phase: phase, PodIP: "10.1.1.1"},
	}
}

func deleted(pod *corev1.Pod) { now := metav1.Now(); pod.DeletionTimestamp = &now }

func TestAJobEndsWithItsPods(t *testing.T) {
	here, going, over := podNamed("here"), podNamed("going", deleted), podNamed("over")
	over.Status.Phase = corev1.PodFailed
	for _, each := range []struct {
		of   *corev1.Pod
		seen bool
		says string
	}{{here, true, ""}, {here, false, "gone"}, {going, true, "deleted"}, {over, true, "ended"}} {
		job := jobOf("j", 0, each.of)
		uppers := []*corev1.Pod{each.of}
		if !each.seen {
			uppers = nil
		}
		v := viewOf(uppers, []*batchv1.Job{job}, nil)
		if why, _ := v.ends(job); !strings.Contains(why, each.says) || (why == "") != (each.says == "") {
			t.Errorf("%s: %q", each.of.Name, why)
		}
	}
}

func TestAnEndedRankMayGoWhileItsGangRuns(t *testing.T) {
	one, two := podNamed("one"), podNamed("two")
	job := jobOf("j", 0, one, two)
	v := viewOf([]*corev1.Pod{two}, []*batchv1.Job{job}, []*corev1.Pod{rankOf(job, "0", corev1.PodSucceeded), rankOf(job, "1", corev1.PodRunning)})
	if why, _ := v.ends(job); why != "" {
		t.Errorf("ends: %s", why)
	}
	v = viewOf([]*corev1.Pod{two}, []*batchv1.Job{job}, []*corev1.Pod{rankOf(job, "0", corev1.PodRunning), rankOf(job, "1", corev1.PodRunning)})
	if why, gone := v.ends(job); why == "" || len(gone) != 1 || gone[0].name != "one" {
		t.Errorf("does not end: %q %v", why, gone)
	}
}

func TestOfTwoJobsOfOnePodTheYoungerEnds(t *testing.T) {
	pod := podNamed("one")
	old, young := jobOf("z", time.Hour, pod), jobOf("a", 0, pod)
	v := viewOf([]*corev1.Pod{pod}, []*batchv1.Job{young, old}, nil)
	if why, _ := v.ends(young); !strings.Contains(why, "older") {
		t.Errorf("the younger stays: %q", why)
	}
	if why, _ := v.ends(old); why != "" || v.claims[pod.UID].job != old {
		t.Errorf("the older goes: %q", why)
	}
}

func TestAJobThatNamesNoPodsEnds(t *testing.T) {
	job := jobOf("j", 0)
	job.Annotations[membersNote] = "../../etc"
	if why, _ := viewOf(nil, []*batchv1.Job{job}, nil).ends(job); why == "" {
		t.Error("it stays")
	}
}

func TestThePodAboveIsAsThePodBelow(t *testing.T) {
	up := podNamed("one")
	job := jobOf("layer-1", 0, up)
	no := false
	job.Spec.Suspend = &no
	below := rankOf(job, "0", corev1.PodRunning)
	status, _ := statusOf(up, Claim{job, 0, below}, "10.9.9.9")
	if status.Phase != corev1.PodRunning || status.PodIP != "10.1.1.1" || status.HostIP != "10.9.9.9" {
		t.Errorf("status %+v", status)
	}
	up.Status = *status
	if again, _ := statusOf(up, Claim{job, 0, below}, "10.9.9.9"); again != nil {
		t.Errorf("written twice: %+v", again)
	}
	if !submitted(up) || jobIn(queued(up).Message, "") != "layer-1" {
		t.Errorf("condition %+v", queued(up))
	}
}

func TestAPodWaitsWithTheReasonOfTheQueue(t *testing.T) {
	up := podNamed("one")
	job := jobOf("layer-1", 0, up)
	job.Annotations[waitsNote] = "next: waits for 2 gpu"
	status, turn := statusOf(up, Claim{job, 0, nil}, "")
	if status.ContainerStatuses[0].State.Waiting.Reason != waits || !strings.Contains(turn.message, "2 gpu") {
		t.Errorf("%+v %+v", status, turn)
	}
}

func TestEndsInTheQueueAreSaidAbove(t *testing.T) {
	for _, each := range []struct {
		note, text string
		phase      corev1.PodPhase
		reason     string
	}{
		{refusedNote, "too large", corev1.PodPending, "Refused"},
		{endNote, `{"phase":"failed","failure":{"message":"violates PodSecurity"}}`, corev1.PodPending, "Failed"},
		{waitsNote, "first in its queue", corev1.PodRunning, "Preempted"},
	} {
		up := podNamed("one")
		up.Status.Phase = each.phase
		job := jobOf("layer-1", 0, up)
		job.Annotations[each.note] = each.text
		status, _ := statusOf(up, Claim{job, 0, nil}, "")
		if status.Phase != corev1.PodFailed || status.Reason != each.reason {
			t.Errorf("%s: %+v", each.reason, status)
		}
	}
}

func TestAJobThatTheHubStopsIsNotYetPreempted(t *testing.T) {
	up := podNamed("one")
	up.Status.Phase = corev1.PodRunning
	job := jobOf("layer-1", 0, up)
	job.Annotations[endNote] = `{"phase":"stopped"}` // it may be cancelled: then the job goes, and never waits
	if status, _ := statusOf(up, Claim{job, 0, nil}, ""); status != nil {
		t.Errorf("reported: %+v", status)
	}
}

func TestARefusalIsInTheWordsOfThePolicy(t *testing.T) {
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	denied := apierrors.NewForbidden(jobs, "j", errors.New("ValidatingAdmissionPolicy 'mlp-jobs' with binding 'mlp-jobs' denied request: MLP Hub: may not mount hostPath"))
	if words, refused := refusedBelow(denied); !refused || words != "MLP Hub: may not mount hostPath" {
		t.Errorf("%q %t", words, refused)
	}
	if _, refused := refusedBelow(apierrors.NewForbidden(jobs, "j", errors.New(`User "x" cannot create resource "jobs"`))); refused {
		t.Error("a missing right is taken for a refusal of the pod")
	}
	if _, refused := refusedBelow(apierrors.NewServiceUnavailable("away")); refused {
		t.Error("a cluster that is away is taken for a refusal")
	}
}

func TestWorkersAreInTheOrderOfTheirNumbers(t *testing.T) {
	if natural("w-2", "w-10") >= 0 || natural("w-10", "w-2") <= 0 || natural("a-1", "b-0") >= 0 {
		t.Error("not in order")
	}
}

func TestOnlyTheNewestEndedJobsAreKept(t *testing.T) {
	var jobs []*batchv1.Job
	for i, name := range []string{"a", "b", "c"} {
		job := jobOf(name, time.Duration(3-i)*time.Hour, podNamed(name))
		job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		jobs = append(jobs, job)
	}
	if found := viewOf(nil, jobs, nil).surplus(2); len(found) != 1 || found[0].Name != "a" {
		t.Errorf("surplus %v", found)
	}
}
