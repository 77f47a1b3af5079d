// Command layer shows a team's compute as one node of the team's own cluster.
//
// Pods that the upper cluster binds to that node become jobs in the team's namespace of the compute
// cluster, where the hub queues them. Their status, logs and streams come back up.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// Config has the agent's options.
type Config struct {
	upperKubeconfig, lowerKubeconfig string
	namespace, tenant, user          string
	node, address                    string
	upperAPI                         string
	leaseNamespace                   string
	taint                            bool
	port, maxPods                    int
	runAs                            int64
	cpuShares                        float64
}

func parse(args []string) (*Config, error) {
	c := &Config{}
	f := flag.NewFlagSet("layer", flag.ContinueOnError)
	f.StringVar(&c.upperKubeconfig, "upper-kubeconfig", "", "kubeconfig of the team's own cluster; empty: the cluster whose pod this is")
	f.StringVar(&c.lowerKubeconfig, "lower-kubeconfig", "", "kubeconfig of the compute cluster, as a member of the team")
	f.StringVar(&c.namespace, "namespace", "", "the team's namespace in the compute cluster, such as mlp-red")
	f.StringVar(&c.tenant, "tenant", "", "the team's name in the hub")
	f.StringVar(&c.user, "user", "", "the hub's user whose jobs the pods become, a member of the team")
	f.StringVar(&c.node, "node", "mlp-compute", "name of the node in the team's own cluster")
	f.StringVar(&c.address, "address", os.Getenv("POD_IP"), "address at which the upper API server reaches this program for logs and exec")
	f.IntVar(&c.port, "port", 10250, "port at that address")
	f.StringVar(&c.upperAPI, "upper-api", "", "HOST:PORT at which pods of the compute cluster reach the upper API server; empty: that of the upper kubeconfig")
	f.StringVar(&c.leaseNamespace, "lease-namespace", "kube-system", "namespace of the upper cluster for the lease of two agents")
	f.BoolVar(&c.taint, "taint", true, "taint the node, so that only pods that tolerate "+nodeTaint+" come")
	f.IntVar(&c.maxPods, "max-pods", 500, "pods that the node has at a time")
	f.Int64Var(&c.runAs, "run-as-user", 1000, "user of pods that name none; the compute cluster runs nothing as root")
	f.Float64Var(&c.cpuShares, "cpu-shares", 3, "shares of one core in the team's quota, the hub's MLP_NODE_CPU_OVERCOMMIT")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"lower-kubeconfig": c.lowerKubeconfig, "namespace": c.namespace, "tenant": c.tenant, "user": c.user, "address": c.address,
	} {
		if value == "" {
			return nil, fmt.Errorf("--%s is missing; see --help", name)
		}
	}
	if c.maxPods < 1 || c.cpuShares <= 0 {
		return nil, fmt.Errorf("--max-pods %d and --cpu-shares %g must be more than 0", c.maxPods, c.cpuShares)
	}
	return c, nil
}

func connect(kubeconfig string) (*rest.Config, error) {
	var found *rest.Config
	var err error
	if kubeconfig == "" {
		found, err = rest.InClusterConfig()
	} else {
		found, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	if err != nil {
		return nil, err
	}
	found.QPS, found.Burst = 100, 200
	found.Timeout = 0
	return found, nil
}

func main() {
	c, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, c); err != nil {
		slog.Error("ended", "error", err)
		os.Exit(1)
	}
}

// run works whenever this agent has the lease of its node.
func run(ctx context.Context, c *Config) error {
	upperConfig, err := connect(c.upperKubeconfig)
	if err != nil {
		return fmt.Errorf("the upper cluster: %w", err)
	}
	lowerConfig, err := connect(c.lowerKubeconfig)
	if err != nil {
		return fmt.Errorf("the compute cluster: %w", err)
	}
	upper, err := kubernetes.NewForConfig(upperConfig)
	if err != nil {
		return err
	}
	lower, err := kubernetes.NewForConfig(lowerConfig)
	if err != nil {
		return err
	}
	groups, err := dynamic.NewForConfig(upperConfig)
	if err != nil {
		return err
	}
	if c.upperAPI == "" {
		c.upperAPI = hostPort(upperConfig.Host)
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	a := &Agent{Config: c, upper: upper, lower: lower, lowerConfig: lowerConfig, groups: groups}
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Name: "mlp-layer-" + c.node, Namespace: c.leaseNamespace},
		Client:     upper.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: fmt.Sprintf("%s-%d", host, os.Getpid())},
	}
	electing, give := context.WithCancel(ctx)
	defer give()
	failed := make(chan error, 1)
	leaderelection.RunOrDie(electing, leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				slog.Info("leads", "node", c.node)
				if err := a.Run(leading); err != nil && leading.Err() == nil {
					failed <- err // the next one starts from the state of both clusters
				}
				give()
			},
			OnStoppedLeading: func() { slog.Info("leads no more") },
		},
	})
	select {
	case err := <-failed:
		return err
	default:
	}
	if ctx.Err() == nil {
		return fmt.Errorf("lost the lease %s: another agent has it, or the upper cluster is away", lock.LeaseMeta.Name)
	}
	return nil
}
