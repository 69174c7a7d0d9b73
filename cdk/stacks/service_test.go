package stacks_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"holdfast/cdk/template"
	"holdfast/pkg/config"
)

// fargate runs a test of every variant that has tasks.
func fargate(t *testing.T, test func(t *testing.T, d deployment)) {
	t.Helper()
	each(t, func(t *testing.T, d deployment) {
		if d.settings.Fargate() {
			test(t, d)
		}
	})
}

func TestATaskHasAllOfFargatesTimeToStop(t *testing.T) {
	fargate(t, func(t *testing.T, d deployment) {
		task := d.workers.Of("AWS::ECS::TaskDefinition")[0]
		containers, _ := task.Get("ContainerDefinitions").([]any)
		container := template.Resource{Properties: containers[0].(map[string]any)}
		same(t, "containers", len(containers), 1)
		same(t, "stop timeout", container.Number("StopTimeout"), 120)
		if d.settings.Policy.CallTimeout >= config.MostStopTime {
			t.Errorf("a call may take %v, a stop %v: one in flight would be cut off", d.settings.Policy.CallTimeout, config.MostStopTime)
		}
		same(t, "its files cannot be changed", container.Get("ReadonlyRootFilesystem"), true)
		dockerfile, err := os.ReadFile("../../functions/workd/Dockerfile")
		if err != nil {
			t.Fatal(err)
		}
		command := template.Texts(container.Get("HealthCheck.Command"))
		if want := `CMD ["` + strings.Join(command[1:], `", "`) + `"]`; !strings.Contains(string(dockerfile), want) {
			t.Errorf("health is asked for by %q, the image says otherwise", want)
		}
		if base := regexp.MustCompile(`(?m)^FROM \S+@sha256:[0-9a-f]{64}$`); len(base.FindAllString(string(dockerfile), -1)) != strings.Count(string(dockerfile), "\nFROM ") {
			t.Error("the image's base is not named by its digest: it would be another one tomorrow")
		}
		same(t, "what it unpacks", fmt.Sprint(container.Get("MountPoints")), "[map[ContainerPath:/tmp ReadOnly:false SourceVolume:scratch]]")
		same(t, "architecture", task.Text("RuntimePlatform.CpuArchitecture"), map[string]string{"arm64": "ARM64", "amd64": "X86_64"}[d.settings.Arch])
		if image := container.Text("Image"); !strings.HasSuffix(image, "/holdfast-workd:v1") {
			t.Errorf("the image is %s", image)
		}
		if !strings.Contains(string(dockerfile), "\nVOLUME [\"/tmp\"]\n") || !strings.Contains(string(dockerfile), "\nUSER nonroot\n") {
			t.Error("the image does not say that its scratch is everybody's: ECS would mount it as root's, and the program is not root")
		}
		told := map[string]string{}
		list, _ := container.Get("Environment").([]any)
		for _, pair := range list {
			of := pair.(map[string]any)
			told[template.Text(of["Name"])] = template.Text(of["Value"])
		}
		put, _ := d.workers.Outputs["WorkdEnvironment"].(map[string]any)
		var elsewhere map[string]string
		if err := json.Unmarshal([]byte(template.Text(put["Value"])), &elsewhere); err != nil {
			t.Errorf("what a workd that runs elsewhere is told: %v", err)
		}
		same(t, "what a workd that runs elsewhere is told", elsewhere, told)
		if _, err := config.ReadEnvironment(config.Workd, func(name string) (string, bool) { v, is := told[name]; return v, is }); err != nil {
			t.Error(err)
		}
	})
}

func TestANewTaskComesBeforeAnOldOneGoesAndOneThatDoesNotStartIsRolledBack(t *testing.T) {
	fargate(t, func(t *testing.T, d deployment) {
		deployment := template.Resource{Properties: d.workers.Of("AWS::ECS::Service")[0].Get("DeploymentConfiguration").(map[string]any)}
		same(t, "least healthy", deployment.Number("MinimumHealthyPercent"), 100)
		same(t, "most", deployment.Number("MaximumPercent"), 200)
		same(t, "rolled back", deployment.Get("DeploymentCircuitBreaker"), map[string]any{"Enable": true, "Rollback": true})
	})
}

func TestTheNumberOfTasksFollowsTheBacklogOfEach(t *testing.T) {
	fargate(t, func(t *testing.T, d deployment) {
		target := d.workers.Of("AWS::ApplicationAutoScaling::ScalableTarget")[0]
		same(t, "least", target.Number("MinCapacity"), d.settings.MinTasks)
		same(t, "most", target.Number("MaxCapacity"), d.settings.MaxTasks)
		if d.settings.Workers == "fargate" && target.Number("MinCapacity") < 1 {
			t.Error("nobody would be there to take the first chunk")
		}
		policy := d.workers.Of("AWS::ApplicationAutoScaling::ScalingPolicy")[0]
		same(t, "kind", policy.Text("PolicyType"), "TargetTrackingScaling")
		tracking := template.Resource{Properties: policy.Get("TargetTrackingScalingPolicyConfiguration").(map[string]any)}
		metrics := fmt.Sprint(tracking.Get("CustomizedMetricSpecification.Metrics"))
		for _, want := range []string{"ApproximateNumberOfMessagesVisible", "holdfast-work", "RunningTaskCount", "waiting / IF(FILL(running, 0) > 0, running, 1)"} {
			if !strings.Contains(metrics, want) {
				t.Errorf("%q is not in %s", want, metrics)
			}
		}
		if tracking.Number("TargetValue") < 1 {
			t.Error("a task is worth less than a chunk")
		}
		same(t, "insights", fmt.Sprint(d.workers.Of("AWS::ECS::Cluster")[0].Get("ClusterSettings")), "[map[Name:containerInsights Value:enabled]]")
		if d.workers.Of("AWS::ECS::Service")[0].Get("DesiredCount") != nil {
			t.Error("a deployment would set back the number of tasks that the scaling chose")
		}
	})
}

func TestNothingComesIn(t *testing.T) {
	fargate(t, func(t *testing.T, d deployment) {
		for _, group := range d.workers.Of("AWS::EC2::SecurityGroup") {
			if in := group.Get("SecurityGroupIngress"); in != nil {
				t.Errorf("%s lets in %v", group.ID, in)
			}
		}
		for _, rule := range d.workers.Of("AWS::EC2::SecurityGroupIngress") {
			to, from := rule.Text("GroupId"), rule.Text("SourceSecurityGroupId")
			if !strings.HasPrefix(to, "${Endpoints") || !strings.HasPrefix(from, "${Tasks") || rule.Number("FromPort") != 443 || rule.Number("ToPort") != 443 {
				t.Errorf("%s lets %s into %s", rule.ID, from, to)
			}
		}
		same(t, "NAT gateways", len(d.workers.Of("AWS::EC2::NatGateway")), 0)
		made := d.settings.VPC == ""
		same(t, "ways out to the internet", len(d.workers.Of("AWS::EC2::InternetGateway")), map[bool]int{true: 1}[made && d.settings.Public])
		interfaces, gateways := 0, 0
		for _, endpoint := range d.workers.Of("AWS::EC2::VPCEndpoint") {
			if endpoint.Text("VpcEndpointType") == "Interface" {
				interfaces++
			} else {
				gateways++
			}
		}
		same(t, "interface endpoints", interfaces, map[bool]int{true: 4}[made && !d.settings.Public])
		same(t, "gateway endpoints", gateways, map[bool]int{true: 2}[made])
		same(t, "flow logs", len(d.workers.Of("AWS::EC2::FlowLog")), map[bool]int{true: 1}[made])
		service := d.workers.Of("AWS::ECS::Service")[0]
		same(t, "addresses", service.Text("NetworkConfiguration.AwsvpcConfiguration.AssignPublicIp"), map[bool]string{true: "ENABLED", false: "DISABLED"}[d.settings.Public])
	})
}
