package main

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// refusal is why a pod can never run below.
type refusal string

func (r refusal) Error() string { return string(r) }

// missing is what a pod waits for above.
type missing string

func (m missing) Error() string { return string(m) }

// Data has the content of one Secret below: values of the ConfigMaps, Secrets and tokens that a pod uses.
//
// Keys are hashes of the value's origin, so equal pods have equal keys.
type Data struct {
	secret   string
	values   map[string][]byte
	identity bool // a token of the upper cluster is in it
	renew    time.Time

	ctx   context.Context
	upper kubernetes.Interface
	pod   *corev1.Pod
	node  string
	cache map[string]map[string][]byte
}

func newData(ctx context.Context, upper kubernetes.Interface, pod *corev1.Pod, secret, node string) *Data {
	return &Data{secret: secret, values: map[string][]byte{}, ctx: ctx, upper: upper, pod: pod, node: node, cache: map[string]map[string][]byte{}}
}

func (d *Data) put(origin string, value []byte) string {
	key := digest(origin, 24)
	d.values[key] = value
	return key
}

// object returns the values of a ConfigMap or Secret above; nil, where it is not there and optional.
func (d *Data) object(kind, name string, optional *bool) (map[string][]byte, error) {
	id := kind + "/" + name
	if found, there := d.cache[id]; there {
		return found, nil
	}
	var found map[string][]byte
	var err error
	if kind == "ConfigMap" {
		var object *corev1.ConfigMap
		if object, err = d.upper.CoreV1().ConfigMaps(d.pod.Namespace).Get(d.ctx, name, metav1.GetOptions{}); err == nil {
			found = maps.Clone(object.BinaryData)
			if found == nil {
				found = map[string][]byte{}
			}
			for key, value := range object.Data {
				found[key] = []byte(value)
			}
		}
	} else {
		var object *corev1.Secret
		if object, err = d.upper.CoreV1().Secrets(d.pod.Namespace).Get(d.ctx, name, metav1.GetOptions{}); err == nil {
			found = object.Data
			if found == nil {
				found = map[string][]byte{}
			}
		}
	}
	if apierrors.IsNotFound(err) {
		if optional != nil && *optional {
			return nil, nil
		}
		return nil, missing(fmt.Sprintf("waits for %s %s of namespace %s", kind, name, d.pod.Namespace))
	}
	if err != nil {
		return nil, err
	}
	d.cache[id] = found
	return found, nil
}

// token asks the upper cluster for a token of the pod's account.
func (d *Data) token(source *corev1.ServiceAccountTokenProjection) ([]byte, error) {
	account := d.pod.Spec.ServiceAccountName
	if account == "" {
		account = "default"
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: source.ExpirationSeconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: d.pod.Name, UID: d.pod.UID},
	}}
	if source.Audience != "" {
		request.Spec.Audiences = []string{source.Audience}
	}
	made, err := d.upper.CoreV1().ServiceAccounts(d.pod.Namespace).CreateToken(d.ctx, account, request, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		return nil, missing(fmt.Sprintf("waits for ServiceAccount %s of namespace %s", account, d.pod.Namespace))
	}
	if err != nil {
		return nil, err
	}
	d.identity = true
	at := time.Now().Add(time.Until(made.Status.ExpirationTimestamp.Time) * 4 / 5)
	if d.renew.IsZero() || at.Before(d.renew) {
		d.renew = at
	}
	return []byte(made.Status.Token), nil
}

// volumes returns the volumes below. ConfigMaps, Secrets and projections are parts of the one Secret there.
func (d *Data) volumes(given []corev1.Volume) ([]corev1.Volume, error) {
	var found []corev1.Volume
	for _, volume := range given {
		files := map[string]file{}
		var mode *int32
		var err error
		switch {
		case volume.ConfigMap != nil:
			mode = volume.ConfigMap.DefaultMode
			err = d.files(files, "ConfigMap", volume.ConfigMap.Name, volume.ConfigMap.Items, volume.ConfigMap.Optional)
		case volume.Secret != nil:
			mode = volume.Secret.DefaultMode
			err = d.files(files, "Secret", volume.Secret.SecretName, volume.Secret.Items, volume.Secret.Optional)
		case volume.Projected != nil:
			mode = volume.Projected.DefaultMode
			err = d.projected(files, volume.Projected)
		case volume.DownwardAPI != nil:
			mode = volume.DownwardAPI.DefaultMode
			err = d.downward(files, volume.DownwardAPI.Items)
		default:
			found = append(found, volume) // the compute cluster's policies judge it
			continue
		}
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			found = append(found, corev1.Volume{Name: volume.Name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
			continue
		}
		source := &corev1.SecretVolumeSource{SecretName: d.secret, DefaultMode: mode}
		for _, at := range slices.Sorted(maps.Keys(files)) {
			source.Items = append(source.Items, corev1.KeyToPath{Key: files[at].key, Path: at, Mode: files[at].mode})
		}
		found = append(found, corev1.Volume{Name: volume.Name, VolumeSource: corev1.VolumeSource{Secret: source}})
	}
	return found, nil
}

type file struct {
	key  string
	mode *int32
}

func (d *Data) files(to map[string]file, kind, name string, items []corev1.KeyToPath, optional *bool) error {
	values, err := d.object(kind, name, optional)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		for key := range values {
			items = append(items, corev1.KeyToPath{Key: key, Path: key})
		}
	}
	for _, item := range items {
		value, there := values[item.Key]
		if !there {
			if optional != nil && *optional {
				continue
			}
			return missing(fmt.Sprintf("waits for key %s of %s %s", item.Key, kind, name))
		}
		to[path.Clean(item.Path)] = file{d.put(kind+"/"+name+"/"+item.Key, value), item.Mode}
	}
	return nil
}

func (d *Data) projected(to map[string]file, volume *corev1.ProjectedVolumeSource) error {
	for i, source := range volume.Sources {
		var err error
		switch {
		case source.ConfigMap != nil:
			err = d.files(to, "ConfigMap", source.ConfigMap.Name, source.ConfigMap.Items, source.ConfigMap.Optional)
		case source.Secret != nil:
			err = d.files(to, "Secret", source.Secret.Name, source.Secret.Items, source.Secret.Optional)
		case source.DownwardAPI != nil:
			err = d.downward(to, source.DownwardAPI.Items)
		case source.ServiceAccountToken != nil:
			origin := fmt.Sprintf("token/%d/%s/%s/%s", i, d.pod.Spec.ServiceAccountName, source.ServiceAccountToken.Audience, source.ServiceAccountToken.Path)
			token, known := d.values[digest(origin, 24)] // pods of a gang have one
			if !known {
				token, err = d.token(source.ServiceAccountToken)
			}
			if err == nil {
				to[path.Clean(source.ServiceAccountToken.Path)] = file{key: d.put(origin, token)}
			}
		default:
			err = refusal("a projected volume has a source that this node does not know; use ConfigMaps, Secrets, tokens and fields")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *Data) downward(to map[string]file, items []corev1.DownwardAPIVolumeFile) error {
	for _, item := range items {
		if item.FieldRef == nil {
			return refusal("a downwardAPI volume has a resourceFieldRef, which this node does not know; use a variable instead")
		}
		value, err := fieldOf(d.pod, item.FieldRef.FieldPath, d.node)
		if err != nil {
			return err
		}
		to[path.Clean(item.Path)] = file{d.put("field/"+item.FieldRef.FieldPath+"="+value, []byte(value)), item.Mode}
	}
	return nil
}

// maxData is the most bytes that the API takes in one Secret.
const maxData = 1 << 20

func (d *Data) size() int {
	size := 0
	for _, value := range d.values {
		size += len(value)
	}
	return size
}

// asSecret returns the Secret below.
func (d *Data) asSecret(namespace string, owner metav1.OwnerReference) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: d.secret, Namespace: namespace, OwnerReferences: []metav1.OwnerReference{owner}},
		Data:       d.values,
	}
}
