package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
)

// serve answers the upper API server for logs, exec, attach and port-forward, and nobody else.
func (a *Agent) serve(ctx context.Context) error {
	ca, err := dynamiccertificates.NewDynamicCAFromConfigMapController(
		"client-ca", metav1.NamespaceSystem, "extension-apiserver-authentication", "client-ca-file", a.upper)
	if err != nil {
		return err
	}
	go ca.Run(ctx, 1)
	auth, err := nodeutil.WebhookAuth(a.upper, a.node, func(c *nodeutil.WebhookAuthConfig) error {
		c.AuthnConfig.ClientCertificateCAContentProvider = ca
		return nil
	})
	if err != nil {
		return err
	}
	handler := api.PodHandler(api.PodHandlerConfig{
		GetContainerLogs: a.logs, RunInContainer: a.exec, AttachToContainer: a.attach, PortForward: a.forward,
		GetPods:               func(context.Context) ([]*corev1.Pod, error) { return listed[corev1.Pod](a.uppers), nil },
		GetPodsFromKubernetes: func(context.Context) ([]*corev1.Pod, error) { return listed[corev1.Pod](a.uppers), nil },
		StreamIdleTimeout:     4 * time.Hour, StreamCreationTimeout: 30 * time.Second,
	}, false)
	certificate, err := selfSigned(a.address)
	if err != nil {
		return err
	}
	server := &http.Server{
		Addr: ":" + strconv.Itoa(a.port), Handler: nodeutil.WithAuth(auth, handler), ReadHeaderTimeout: 30 * time.Second,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequestClientCert, Certificates: []tls.Certificate{certificate}},
	}
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	if err := server.ListenAndServeTLS("", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// selfSigned returns a certificate of this start. API servers check those of nodes only where they are told a CA.
func selfSigned(address string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "mlp-layer"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(address); ip != nil {
		template.IPAddresses = []net.IP{ip}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// below returns the name of the pod below of a pod above.
func (a *Agent) below(namespace, name string) (string, error) {
	found, there, err := a.uppers.GetByKey(namespace + "/" + name)
	if err != nil || !there {
		return "", errdefs.NotFoundf("pod %s/%s is not on this node", namespace, name)
	}
	up := found.(*corev1.Pod)
	v := a.view()
	claim, claimed := v.claims[up.UID]
	if !claimed || claim.pod == nil {
		words := "it has not gone down yet"
		if of := queued(up); of != nil {
			words = of.Message
		}
		return "", errdefs.NotFoundf("pod %s/%s does not run yet: %s", namespace, name, words)
	}
	return claim.pod.Name, nil
}

func (a *Agent) logs(ctx context.Context, namespace, pod, container string, o api.ContainerLogOpts) (io.ReadCloser, error) {
	name, err := a.below(namespace, pod)
	if err != nil {
		return nil, err
	}
	asked := &corev1.PodLogOptions{Container: container, Follow: o.Follow, Previous: o.Previous, Timestamps: o.Timestamps}
	if o.Tail > 0 {
		n := int64(o.Tail)
		asked.TailLines = &n
	}
	if o.LimitBytes > 0 {
		n := int64(o.LimitBytes)
		asked.LimitBytes = &n
	}
	if o.SinceSeconds > 0 {
		n := int64(o.SinceSeconds)
		asked.SinceSeconds = &n
	} else if !o.SinceTime.IsZero() {
		at := metav1.NewTime(o.SinceTime)
		asked.SinceTime = &at
	}
	return a.lower.CoreV1().Pods(a.namespace).GetLogs(name, asked).Stream(ctx)
}

func (a *Agent) request(pod, of string) *rest.Request {
	return a.lower.CoreV1().RESTClient().Post().Resource("pods").Namespace(a.namespace).Name(pod).SubResource(of)
}

func (a *Agent) exec(ctx context.Context, namespace, pod, container string, command []string, io api.AttachIO) error {
	name, err := a.below(namespace, pod)
	if err != nil {
		return err
	}
	return a.stream(ctx, a.request(name, "exec").VersionedParams(&corev1.PodExecOptions{
		Container: container, Command: command, TTY: io.TTY(), Stdin: io.Stdin() != nil, Stdout: io.Stdout() != nil, Stderr: io.Stderr() != nil,
	}, scheme.ParameterCodec), io)
}

func (a *Agent) attach(ctx context.Context, namespace, pod, container string, io api.AttachIO) error {
	name, err := a.below(namespace, pod)
	if err != nil {
		return err
	}
	return a.stream(ctx, a.request(name, "attach").VersionedParams(&corev1.PodAttachOptions{
		Container: container, TTY: io.TTY(), Stdin: io.Stdin() != nil, Stdout: io.Stdout() != nil, Stderr: io.Stderr() != nil,
	}, scheme.ParameterCodec), io)
}

func (a *Agent) stream(ctx context.Context, request *rest.Request, io api.AttachIO) error {
	executor, err := remotecommand.NewSPDYExecutor(a.lowerConfig, http.MethodPost, request.URL())
	if err != nil {
		return err
	}
	options := remotecommand.StreamOptions{Stdin: io.Stdin(), Tty: io.TTY(), TerminalSizeQueue: sizes(io.Resize())}
	if out := io.Stdout(); out != nil {
		options.Stdout = out
	}
	if out := io.Stderr(); out != nil {
		options.Stderr = out
	}
	return executor.StreamWithContext(ctx, options)
}

type sizes <-chan api.TermSize

// Next implements remotecommand.TerminalSizeQueue.
func (s sizes) Next() *remotecommand.TerminalSize {
	size, open := <-s
	if !open {
		return nil
	}
	return &remotecommand.TerminalSize{Width: size.Width, Height: size.Height}
}

// forward joins a stream from above with a port of the pod below.
func (a *Agent) forward(ctx context.Context, namespace, pod string, port int32, stream io.ReadWriteCloser) error {
	name, err := a.below(namespace, pod)
	if err != nil {
		return err
	}
	transport, upgrader, err := spdy.RoundTripperFor(a.lowerConfig)
	if err != nil {
		return err
	}
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, a.request(name, "portforward").URL())
	connection, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return err
	}
	defer connection.Close()
	headers := http.Header{}
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	headers.Set(corev1.PortHeader, strconv.Itoa(int(port)))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	failed, err := connection.CreateStream(headers)
	if err != nil {
		return err
	}
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := connection.CreateStream(headers)
	if err != nil {
		return err
	}
	done := make(chan error, 3)
	go func() {
		words, err := io.ReadAll(failed)
		if err == nil && len(words) > 0 {
			done <- errors.New(string(words))
		}
	}()
	go func() { _, err := io.Copy(data, stream); data.Close(); done <- orEnd(err) }()
	go func() { _, err := io.Copy(stream, data); done <- orEnd(err) }()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-done:
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
}

func orEnd(err error) error {
	if err == nil {
		return io.EOF
	}
	return err
}
