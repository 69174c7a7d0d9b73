package stacks

import (
	"time"

	scaling "github.com/aws/aws-cdk-go/awscdk/v2/awsapplicationautoscaling"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsecr"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsecs"

	"holdfast/pkg/config"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/sqsqueue"
)

// Size of a task.
const (
	taskCPU    = 512  // of 1,024
	taskMemory = 2048 // MB: of which the sandbox of a PDF takes up to 384
)

// addService runs workd: the same engine as a process that polls both queues and reaps for itself.
func (w *workers) addService() {
	vpc, subnets, tasks := w.network()
	cluster := awsecs.NewCluster(w.stack, text("Cluster"), &awsecs.ClusterProps{
		ClusterName: text(w.Stack), Vpc: vpc, ContainerInsightsV2: awsecs.ContainerInsights_ENABLED, // RunningTaskCount is of it
	})
	service := awsecs.NewFargateService(w.stack, text("Service"), &awsecs.FargateServiceProps{
		ServiceName: text(config.FunctionName(w.Stack, config.Workd)), Cluster: cluster, TaskDefinition: w.task(),
		VpcSubnets: subnets, AssignPublicIp: yes(w.Public),
		SecurityGroups: &[]awsec2.ISecurityGroup{tasks},
		// New tasks come before old ones go, one that does not start is rolled back, and DesiredCount is the scaling's.
		MinHealthyPercent: number(100), MaxHealthyPercent: number(200),
		CircuitBreaker: &awsecs.DeploymentCircuitBreaker{Rollback: yes(true)},
	})
	w.addScaling(cluster, service)
}

// task is one process, with nothing else in it. It has all of Fargate's time to stop: longer than a call takes.
func (w *workers) task() awsecs.FargateTaskDefinition {
	logs := w.logGroup("WorkdLog", "/holdfast/"+w.Stack+"/workd")
	role := w.role(config.Workd, "ecs-tasks.amazonaws.com")
	excuseWildcard(role, `.*:task\/.*\/\*`, whyTasks)
	task := awsecs.NewFargateTaskDefinition(w.stack, text("Task"), &awsecs.FargateTaskDefinitionProps{
		Family: text(config.FunctionName(w.Stack, config.Workd)), Cpu: number(taskCPU), MemoryLimitMiB: number(taskMemory), TaskRole: role,
		RuntimePlatform: &awsecs.RuntimePlatform{CpuArchitecture: w.taskArchitecture(), OperatingSystemFamily: awsecs.OperatingSystemFamily_LINUX()},
	})
	images := awsecr.Repository_FromRepositoryName(w.stack, text("Images"), text(repositoryName(w.Settings)))
	container := task.AddContainer(text("workd"), &awsecs.ContainerDefinitionOptions{
		Image:                  awsecs.ContainerImage_FromEcrRepository(images, text(w.Image)),
		Environment:            w.environment(config.Workd),
		Logging:                awsecs.LogDrivers_AwsLogs(&awsecs.AwsLogDriverProps{LogGroup: logs, StreamPrefix: text("workd")}),
		StopTimeout:            duration(config.MostStopTime),
		ReadonlyRootFilesystem: yes(true),
		HealthCheck: &awsecs.HealthCheck{ // as its Dockerfile says, which ECS does not read
			Command: texts("CMD", "/workd", "health"), Interval: duration(30 * time.Second), Timeout: duration(10 * time.Second), StartPeriod: duration(30 * time.Second),
		},
	})
	// Nothing but its scratch can be written: the compiled reader of PDF. The image says that it is everybody's.
	task.AddVolume(&awsecs.Volume{Name: text("scratch")})
	container.AddMountPoints(&awsecs.MountPoint{ContainerPath: text("/tmp"), SourceVolume: text("scratch"), ReadOnly: yes(false)})
	excuseWildcard(task.ExecutionRole(), `\*`, whyToken)
	excuse(task, "AWS::ECS::TaskDefinition", "AwsSolutions-ECS2", "", whyPlain)
	return task
}

func (w *workers) taskArchitecture() awsecs.CpuArchitecture {
	if w.Arch == "amd64" {
		return awsecs.CpuArchitecture_X86_64()
	}
	return awsecs.CpuArchitecture_ARM64()
}

// meanChunk is how long a chunk takes by estimate: it sizes the number of tasks, and nothing else.
const meanChunk = time.Minute

// backlog is how many waiting chunks a task is worth: what it works off in the time of one attempt.
func (w *workers) backlog() int {
	claims := max(1, w.InFlight/callsPerChunk)
	return max(1, claims*int(w.Policy.AttemptTimeout/meanChunk))
}

// callsPerChunk are in flight for one chunk at a time, by estimate.
const callsPerChunk = 8

// addScaling follows the number of waiting chunks for each running task. Where no task runs, all that waits counts.
func (w *workers) addScaling(cluster awsecs.Cluster, service awsecs.FargateService) {
	target := scaling.NewCfnScalableTarget(w.stack, text("TaskCount"), &scaling.CfnScalableTargetProps{
		MinCapacity: number(w.MinTasks), MaxCapacity: number(w.MaxTasks),
		ResourceId:        text("service/" + *cluster.ClusterName() + "/" + *service.ServiceName()),
		ScalableDimension: text("ecs:service:DesiredCount"), ServiceNamespace: text("ecs"),
	})
	name, _ := sqsqueue.Names(w.Stack, pipeline.WorkQueue)
	scaling.NewCfnScalingPolicy(w.stack, text("Backlog"), &scaling.CfnScalingPolicyProps{
		PolicyName: text(config.FunctionName(w.Stack, config.Workd)), PolicyType: text("TargetTrackingScaling"), ScalingTargetId: target.Ref(),
		TargetTrackingScalingPolicyConfiguration: &scaling.CfnScalingPolicy_TargetTrackingScalingPolicyConfigurationProperty{
			TargetValue:      number(w.backlog()),
			ScaleOutCooldown: number(60), ScaleInCooldown: seconds(w.Policy.AttemptTimeout),
			CustomizedMetricSpecification: map[string]any{"metrics": []any{
				tracked("waiting", "AWS/SQS", "ApproximateNumberOfMessagesVisible", map[string]string{"QueueName": name}),
				tracked("running", "ECS/ContainerInsights", "RunningTaskCount", map[string]string{"ClusterName": *cluster.ClusterName(), "ServiceName": *service.ServiceName()}),
				map[string]any{"id": "backlog", "expression": "waiting / IF(FILL(running, 0) > 0, running, 1)", "label": "waiting chunks for each task", "returnData": true},
			}},
		},
	})
}

// tracked is a metric that a scaling policy reckons with.
func tracked(id, namespace, name string, dimensions map[string]string) map[string]any {
	var list []any
	for _, key := range sortedKeys(dimensions) {
		list = append(list, map[string]any{"name": key, "value": dimensions[key]})
	}
	return map[string]any{"id": id, "returnData": false, "metricStat": map[string]any{
		"stat": "Average", "metric": map[string]any{"namespace": namespace, "metricName": name, "dimensions": list},
	}}
}
