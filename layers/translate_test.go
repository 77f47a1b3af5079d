package main

import (
	"context"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func agent(objects ...runtime.Object) *Agent {
	upper := fake.NewClientset(objects...)
	upper.PrependReactor("create", "serviceaccounts", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "token" {
			return false, nil, nil
		}
		return true, &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{Token: "secret"}}, nil
	})
	config := &Config{namespace: "mlp-red", tenant: "red", user: "red-cluster", node: "mlp-compute", upperAPI: "10.0.0.1:6443", runAs: 1000, maxPods: 10, cpuShares: 3}
	return &Agent{Config: config, upper: upper, owner: ownerID("cluster", config.node)}
}

func podNamed(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team", UID: types.UID("uid-" + name)},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, NodeName: "mlp-compute", ServiceAccountName: "robot", PriorityClassName: "theirs",
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, NodeSelector: map[string]string{"type": "virtual-kubelet"},
			Containers: []corev1.Container{{Name: "main", Image: "image"}},
		},
	}
	for _, each := range change {
		each(pod)
	}
	return pod
}

func made(t *testing.T, a *Agent, pods ...*corev1.Pod) (*batchv1.Job, *Data) {
	t.Helper()
	gang := ""
	if len(pods) > 1 {
		gang = "team/gang/g"
	}
	job, data, err := a.make(context.Background(), nil, pods, gang)
	if err != nil {
		t.Fatal(err)
	}
	return job, data
}

func TestAPodBecomesASuspendedJobOfTheTeam(t *testing.T) {
	job, data := made(t, agent(), podNamed("one", func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "theirs"}}
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
	}))
	if !suspended(job) || job.Labels[queueLabel] != "red" || job.Annotations[userNote] != "red-cluster" || len(job.OwnerReferences) > 0 {
		t.Errorf("not as the hub takes jobs in: %+v", job.ObjectMeta)
	}
	if membersOf(job)[0] != (Member{"team", "one", "uid-one"}) {
		t.Errorf("members %v", membersOf(job))
	}
	spec := job.Spec.Template.Spec
	if spec.NodeName != "" || spec.Tolerations != nil || spec.NodeSelector != nil || spec.ServiceAccountName != "" || spec.PriorityClassName != "" {
		t.Errorf("names things of the upper cluster: %+v", spec)
	}
	if *spec.AutomountServiceAccountToken || !*spec.SecurityContext.RunAsNonRoot || *spec.Containers[0].SecurityContext.AllowPrivilegeEscalation {
		t.Errorf("not restricted: %+v", spec)
	}
	if limit := spec.Containers[0].Resources.Limits[corev1.ResourceMemory]; limit.String() != "64Mi" {
		t.Errorf("memory limit %s", limit.String())
	}
	if *job.Spec.BackoffLimit != 0 || len(data.values) != 0 {
		t.Errorf("tries %d, data %v", *job.Spec.BackoffLimit, data.values)
	}
	for key := range job.Spec.Template.Labels {
		if strings.Contains(key, "/") {
			t.Errorf("label %s of a pod has a prefix", key)
		}
	}
}

func TestFieldsThatBreakOutAreLeftForThePoliciesBelow(t *testing.T) {
	yes := true
	job, _ := made(t, agent(), podNamed("bad", func(pod *corev1.Pod) {
		pod.Spec.HostNetwork = true
		pod.Spec.Volumes = []corev1.Volume{{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
		pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: &yes}
	}))
	spec := job.Spec.Template.Spec
	if !spec.HostNetwork || spec.Volumes[0].HostPath == nil || !*spec.Containers[0].SecurityContext.Privileged {
		t.Errorf("something was dropped in silence: %+v", spec)
	}
}

func TestDataComesAsOneSecretOfTheJob(t *testing.T) {
	a := agent(
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "config", Namespace: "team"}, Data: map[string]string{"a": "1", "b": "2"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "secret", Namespace: "team"}, Data: map[string][]byte{"key": []byte("value")}},
	)
	no := true
	job, data := made(t, a, podNamed("one", func(pod *corev1.Pod) {
		c := &pod.Spec.Containers[0]
		c.EnvFrom = []corev1.EnvFromSource{{Prefix: "C_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "config"}}}}
		c.Env = []corev1.EnvVar{
			{Name: "NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
			{Name: "GONE", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "none"}, Key: "x", Optional: &no}}},
			{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
		}
		pod.Spec.Volumes = []corev1.Volume{
			{Name: "ssh", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "secret", Items: []corev1.KeyToPath{{Key: "key", Path: "id"}}}}},
			{Name: "account", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "config"}, Items: []corev1.KeyToPath{{Key: "a", Path: "ca.crt"}}}},
				{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}}},
			}}}},
		}
	}))
	spec, secret := job.Spec.Template.Spec, job.Name+secretEnd
	files := map[string]string{}
	for _, volume := range spec.Volumes {
		if volume.Secret == nil || volume.Secret.SecretName != secret {
			t.Fatalf("volume %s is not of the job's Secret: %+v", volume.Name, volume)
		}
		name := map[string]string{"v0": "ssh", "v1": "account"}[volume.Name]
		for _, item := range volume.Secret.Items {
			files[name+"/"+item.Path] = string(data.values[item.Key])
		}
	}
	for file, want := range map[string]string{"ssh/id": "value", "account/token": "secret", "account/ca.crt": "1", "account/namespace": "team"} {
		if files[file] != want {
			t.Errorf("%s is %q", file, files[file])
		}
	}
	env := map[string]corev1.EnvVar{}
	for _, each := range spec.Containers[0].Env {
		env[each.Name] = each
		if each.ValueFrom != nil && each.ValueFrom.SecretKeyRef != nil && each.ValueFrom.SecretKeyRef.Name != secret {
			t.Errorf("%s is of another Secret", each.Name)
		}
	}
	if string(data.values[env["C_b"].ValueFrom.SecretKeyRef.Key]) != "2" || env["NAME"].Value != "one" || env["IP"].ValueFrom.FieldRef == nil {
		t.Errorf("variables %+v", env)
	}
	if _, there := env["GONE"]; there || env["KUBERNETES_SERVICE_HOST"].Value != "10.0.0.1" || env["KUBERNETES_SERVICE_PORT"].Value != "6443" {
		t.Errorf("variables %+v", env)
	}
	if job.Annotations[dataNote] == "" {
		t.Error("nothing says that the job has a Secret")
	}
}

func TestWhatIsMissingAboveIsWaitedFor(t *testing.T) {
	pod := podNamed("one", func(pod *corev1.Pod) {
		pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "later"}}}}}
	})
	_, _, err := agent().make(context.Background(), nil, []*corev1.Pod{pod}, "")
	if _, waits := err.(missing); !waits || !strings.Contains(err.Error(), "ConfigMap later") {
		t.Errorf("got %v", err)
	}
}

func TestTooMuchDataIsRefusedWithItsSize(t *testing.T) {
	a := agent(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "large", Namespace: "team"}, Data: map[string][]byte{"x": make([]byte, maxData), "y": []byte("1")}})
	pod := podNamed("one", func(pod *corev1.Pod) {
		pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "large"}}}}
	})
	_, _, err := a.make(context.Background(), nil, []*corev1.Pod{pod}, "")
	if words, refused := refusedBelow(err); !refused || !strings.Contains(words, "1048577 bytes") {
		t.Errorf("got %v", err)
	}
}

func indexed(name, index string) *corev1.Pod {
	return podNamed(name, func(pod *corev1.Pod) {
		pod.Spec.Hostname = name
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "RANK", Value: index}, {Name: "SIZE", Value: "2"}}
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "random-" + index, MountPath: "/data"}}
		pod.Spec.Volumes = []corev1.Volume{{Name: "random-" + index}}
	})
}

func TestPodsOfAGangAreOneJobWithTheirIndexes(t *testing.T) {
	job, _ := made(t, agent(), indexed("w-0", "0"), indexed("w-1", "1"))
	if *job.Spec.Completions != 2 || *job.Spec.CompletionMode != batchv1.IndexedCompletion || *job.Spec.BackoffLimitPerIndex != 0 {
		t.Errorf("job %+v", job.Spec)
	}
	env := job.Spec.Template.Spec.Containers[0].Env
	if env[0].ValueFrom.FieldRef.FieldPath != indexField || env[1].Value != "2" {
		t.Errorf("variables %+v", env)
	}
}

func TestPodsOfAGangThatDifferAreRefusedWithTheField(t *testing.T) {
	other := indexed("w-1", "1")
	other.Spec.Containers[0].Image = "another"
	_, _, err := agent().make(context.Background(), nil, []*corev1.Pod{indexed("w-0", "0"), other}, "g")
	if words, refused := refusedBelow(err); !refused || !strings.Contains(words, ".spec.containers[0].image") {
		t.Errorf("got %v", err)
	}
}

func TestNamesAreBoundedAndTheSameForTheSamePods(t *testing.T) {
	long := strings.Repeat("x", 253)
	one, other := jobName(ownerID(long, long), []string{"a", "b"}), jobName(ownerID(long, long), []string{"b", "a"})
	if one != other || len(one) > 40 {
		t.Errorf("%s and %s", one, other)
	}
	if ownerID("one", "node") == ownerID("another", "node") {
		t.Error("two clusters have one identity")
	}
}

func TestTheNodeHasHalfOfTheQuotaBelow(t *testing.T) {
	quota := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
		"requests.cpu": resource.MustParse("12"), "requests.memory": resource.MustParse("8Gi"),
		"requests.nvidia.com/gpu": resource.MustParse("4"), "services.nodeports": resource.MustParse("0"),
	}}}
	found := capacityOf(agent().Config, quota)
	for name, want := range map[corev1.ResourceName]string{"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "2", "pods": "10"} {
		if got := found[name]; got.Cmp(resource.MustParse(want)) != 0 {
			t.Errorf("%s is %s", name, got.String())
		}
	}
	if _, there := found["services.nodeports"]; there {
		t.Error("the node has services")
	}
}
