package main

import (
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Claim is the place of an upper pod in a job below.
type Claim struct {
	job   *batchv1.Job
	index int
	pod   *corev1.Pod // below; nil where there is none
}

// View is both clusters as their watches show them.
type View struct {
	uppers map[types.UID]*corev1.Pod
	jobs   []*batchv1.Job              // the older first
	pods   map[string][]*corev1.Pod    // below, by job
	claims map[types.UID]Claim         // by upper pod
	twice  map[types.UID]bool          // jobs whose pods an older one has
	ranks  map[types.UID][]*corev1.Pod // the newest pod below of each member, by job
}

func indexOf(pod *corev1.Pod) int {
	i, err := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation])
	if err != nil || i < 0 {
		return 0
	}
	return i
}

func viewOf(uppers []*corev1.Pod, jobs []*batchv1.Job, lowers []*corev1.Pod) *View {
	v := &View{
		uppers: map[types.UID]*corev1.Pod{}, jobs: jobs, pods: map[string][]*corev1.Pod{}, claims: map[types.UID]Claim{},
		twice: map[types.UID]bool{}, ranks: map[types.UID][]*corev1.Pod{},
	}
	for _, pod := range uppers {
		v.uppers[pod.UID] = pod
	}
	for _, pod := range lowers {
		name := pod.Labels[batchv1.JobNameLabel]
		v.pods[name] = append(v.pods[name], pod)
	}
	slices.SortFunc(jobs, func(x, y *batchv1.Job) int {
		if c := x.CreationTimestamp.Compare(y.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(x.Name, y.Name)
	})
	for _, job := range jobs {
		members := membersOf(job)
		newest := make([]*corev1.Pod, len(members))
		for _, pod := range v.pods[job.Name] {
			if i := indexOf(pod); i < len(newest) && (newest[i] == nil || newer(pod, newest[i])) {
				newest[i] = pod
			}
		}
		v.ranks[job.UID] = newest
		for i, m := range members {
			if _, taken := v.claims[types.UID(m.uid)]; taken {
				v.twice[job.UID] = true
				continue
			}
			v.claims[types.UID(m.uid)] = Claim{job, i, newest[i]}
		}
	}
	return v
}

func newer(x, y *corev1.Pod) bool {
	if (x.DeletionTimestamp == nil) != (y.DeletionTimestamp == nil) {
		return x.DeletionTimestamp == nil
	}
	return y.CreationTimestamp.Before(&x.CreationTimestamp)
}

// ends says why a job is to go: its pods above are gone, or it must not run. Empty: it stays.
func (v *View) ends(job *batchv1.Job) (why string, gone []Member) {
	members := membersOf(job)
	if len(members) == 0 {
		return "it names no pods", nil
	}
	if v.twice[job.UID] {
		return "an older job has its pods", nil
	}
	over := jobOver(job) != nil
	for i, m := range members {
		up := v.uppers[types.UID(m.uid)]
		rank := v.ranks[job.UID][i]
		if !over && (rank == nil || !podOver(rank)) {
			switch {
			case up == nil:
				return "its pod is gone", []Member{m}
			case up.DeletionTimestamp != nil:
				return "its pod is being deleted", nil
			case podOver(up):
				return "its pod has ended", nil
			}
		}
		if up == nil {
			gone = append(gone, m)
		}
	}
	if over && len(gone) == len(members) {
		return "its pods are gone", gone
	}
	return "", nil
}

// view reads the copies. Jobs of another user are not the agent's, whatever their labels say.
func (a *Agent) view() *View {
	jobs := slices.DeleteFunc(listed[batchv1.Job](a.jobs), func(job *batchv1.Job) bool { return job.Annotations[userNote] != a.user })
	return viewOf(listed[corev1.Pod](a.uppers), jobs, listed[corev1.Pod](a.lowers))
}

// surplus returns the oldest of the ended jobs beyond the number that is kept for their logs.
func (v *View) surplus(kept int) []*batchv1.Job {
	var found []*batchv1.Job
	for _, job := range v.jobs {
		told := jobOver(job) != nil && job.DeletionTimestamp == nil
		for _, m := range membersOf(job) {
			up := v.uppers[types.UID(m.uid)]
			told = told && (up == nil || podOver(up))
		}
		if told {
			found = append(found, job)
		}
	}
	return found[:max(0, len(found)-kept)]
}
