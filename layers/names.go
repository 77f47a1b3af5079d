package main

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// Labels, annotations and names of the agent's objects. Names begin with "layer-", so the compute
// cluster's policies know them; both hashes bound their length.
const (
	jobPrefix   = "layer-"
	ownerLabel  = "mlp-layer/cluster" // on jobs: which upper cluster and node they are of
	podLabel    = "mlp-layer"         // on pods, whose labels must have no prefix
	membersNote = "mlp-layer/pods"    // on jobs: NAMESPACE/NAME/UID of the upper pods, by index
	groupNote   = "mlp-layer/group"   // on jobs: the gang, where there is one
	dataNote    = "mlp-layer/data"    // on jobs: a Secret belongs to it
	queueLabel  = "mlp-hub/queue"
	userNote    = "mlp-hub/user"
	jobLabel    = "mlp-hub/job"
	refusedNote = "mlp-hub/refused"
	waitsNote   = "mlp-hub/waits"
	secretEnd   = ".layer" // names of Secrets; the hub's own have no dot
	nodeTaint   = "mlp-hub/compute"
)

func digest(text string, digits int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:digits]
}

// ownerID returns the identity of a node of an upper cluster. Two clusters never share it, whatever they are called.
func ownerID(clusterUID, node string) string { return digest(clusterUID+"/"+node, 8) }

// jobName returns the name of the job of these upper pods: the same for the same pods, so none is created twice.
func jobName(owner string, uids []string) string {
	sorted := slices.Sorted(slices.Values(uids))
	return jobPrefix + owner + "-" + digest(strings.Join(sorted, ","), 16)
}

func hostPort(server string) string {
	at, err := url.Parse(server)
	if err != nil || at.Host == "" {
		return server
	}
	if at.Port() == "" {
		return at.Host + ":443"
	}
	return at.Host
}

// Member is an upper pod as its job remembers it.
type Member struct{ namespace, name, uid string }

func memberOf(pod *corev1.Pod) Member { return Member{pod.Namespace, pod.Name, string(pod.UID)} }

func writeMembers(pods []*corev1.Pod) string {
	all := make([]string, len(pods))
	for i, pod := range pods {
		all[i] = pod.Namespace + "/" + pod.Name + "/" + string(pod.UID)
	}
	return strings.Join(all, ",")
}

// membersOf reads the members of a job. What somebody wrote there by hand counts as none.
func membersOf(job *batchv1.Job) []Member {
	var found []Member
	for _, each := range strings.Split(job.Annotations[membersNote], ",") {
		parts := strings.Split(each, "/")
		if len(parts) != 3 {
			return nil
		}
		found = append(found, Member{parts[0], parts[1], parts[2]})
	}
	return found
}

// jobOver returns the condition by which a job has ended, nil while it has not.
func jobOver(job *batchv1.Job) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		c := &job.Status.Conditions[i]
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

func suspended(job *batchv1.Job) bool { return job.Spec.Suspend != nil && *job.Spec.Suspend }

func podOver(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
