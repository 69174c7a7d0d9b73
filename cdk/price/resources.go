package price

import (
	"fmt"
	"strconv"
	"strings"

	"holdfast/cdk/template"
)

// free are the types that cost nothing while nothing is done with them.
var free = map[string]bool{}

func init() {
	for _, kind := range []string{
		"AWS::ApiGatewayV2::Api", "AWS::ApiGatewayV2::Authorizer", "AWS::ApiGatewayV2::Integration", "AWS::ApiGatewayV2::Route", "AWS::ApiGatewayV2::Stage",
		"AWS::ApplicationAutoScaling::ScalableTarget", "AWS::ApplicationAutoScaling::ScalingPolicy",
		"AWS::DynamoDB::Table", // on demand: by request and stored GB
		"AWS::EC2::FlowLog",    // refused packets alone, by GB
		"AWS::EC2::InternetGateway", "AWS::EC2::Route", "AWS::EC2::RouteTable", "AWS::EC2::SecurityGroup", "AWS::EC2::SecurityGroupIngress",
		"AWS::EC2::Subnet", "AWS::EC2::SubnetRouteTableAssociation", "AWS::EC2::VPC", "AWS::EC2::VPCGatewayAttachment",
		"AWS::ECR::Repository", // by stored GB
		"AWS::ECS::TaskDefinition", "AWS::IAM::Policy", "AWS::IAM::Role",
		"AWS::Lambda::EventInvokeConfig", "AWS::Lambda::Permission", "AWS::Logs::LogGroup",
		"AWS::S3::Bucket", "AWS::S3::BucketPolicy", "AWS::SNS::Subscription", "AWS::SNS::Topic", "AWS::SNS::TopicPolicy",
		"AWS::SQS::Queue", "AWS::SQS::QueuePolicy",
		"AWS::Lambda::Function", // by request; what starts one is charged below
	} {
		free[kind] = true
	}
}

// order of the lines of a bill.
var order = []string{
	"AWS::Events::Rule", "AWS::Lambda::EventSourceMapping", "AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard",
	"AWS::ECS::Cluster", "AWS::ECS::Service", "AWS::EC2::VPCEndpoint", "AWS::EC2::NatGateway", "AWS::EC2::EIP",
}

// perResource is what the resources of a type cost.
var perResource = map[string]func(b *bill, all []template.Resource, t template.Template){
	"AWS::Events::Rule":               (*bill).sweeps,
	"AWS::Lambda::EventSourceMapping": (*bill).polls,
	"AWS::CloudWatch::Alarm":          (*bill).alarms,
	"AWS::CloudWatch::Dashboard": func(b *bill, all []template.Resource, _ template.Template) {
		b.add(fmt.Sprintf("%d dashboard", len(all)), float64(len(all))*b.of("dashboard-month"))
	},
	"AWS::ECS::Cluster": func(b *bill, all []template.Resource, _ template.Template) {
		n := float64(len(all)) * b.idle("insights-metrics")
		b.add(fmt.Sprintf("Container Insights, %.0f metrics", n), n*b.of("custom-metric-month"))
	},
	"AWS::ECS::Service":     (*bill).tasks,
	"AWS::EC2::VPCEndpoint": (*bill).endpoints,
	"AWS::EC2::NatGateway": func(b *bill, all []template.Resource, _ template.Template) {
		b.add("NAT gateways", float64(len(all))*b.of("nat-gateway-hour")*b.Hours)
	},
	"AWS::EC2::EIP": func(b *bill, all []template.Resource, _ template.Template) {
		b.add("public addresses", float64(len(all))*b.of("public-address-hour")*b.Hours)
	},
}

// sweeps: what a rule starts every minute, with what it reads and writes into its log.
func (b *bill) sweeps(all []template.Resource, t template.Template) {
	for _, rule := range all {
		minutes, err := minutesOf(rule.Text("ScheduleExpression"))
		if err != nil {
			b.errs = append(b.errs, err.Error())
			continue
		}
		times := b.Hours * 60 / minutes
		memory, arch := 0.0, "arm64"
		for _, fn := range t.Of("AWS::Lambda::Function") {
			if strings.Contains(template.Text(rule.Get("Targets")), fn.ID[strings.Index(fn.ID, ".")+1:]) {
				memory = fn.Number("MemorySize") / 1024
				if strings.Contains(fn.Text("Architectures"), "x86_64") {
					arch = "amd64"
				}
			}
		}
		if memory == 0 {
			b.errs = append(b.errs, "the function that rule "+rule.ID+" starts")
		}
		b.add(fmt.Sprintf("%.0f sweeps", times), times*(b.of("lambda-request")+memory*b.idle("sweep-seconds")*b.of("lambda-gb-second-"+arch)))
		b.add("what they read", times*b.idle("sweep-read-units")*b.of("dynamodb-read-unit"))
		b.add("what they log", times*b.idle("sweep-log-bytes")/1e9*b.of("log-gb"))
	}
}

// minutesOf a schedule, e.g. rate(1 minute).
func minutesOf(schedule string) (float64, error) {
	fields := strings.Fields(strings.TrimSuffix(strings.TrimPrefix(schedule, "rate("), ")"))
	if len(fields) == 2 && strings.HasPrefix(fields[1], "minute") {
		if n, err := strconv.ParseFloat(fields[0], 64); err == nil {
			return n, nil
		}
	}
	return 0, fmt.Errorf("how often %q is", schedule)
}

// polls: Lambda asks the queues all the time, and each question is charged.
func (b *bill) polls(all []template.Resource, _ template.Template) {
	requests := float64(len(all)) * b.idle("pollers") * b.Hours * 3600 / b.idle("poll-seconds")
	b.add(fmt.Sprintf("%.0f empty polls of %d queues by Lambda", requests, len(all)), requests*b.of("sqs-request"))
}

// alarms are charged by the metric; metrics of our own beside.
func (b *bill) alarms(all []template.Resource, _ template.Template) {
	metrics := 0
	own := map[string]bool{}
	count := func(namespace, name string) {
		metrics++
		if !strings.HasPrefix(namespace, "AWS/") {
			own[namespace+" "+name] = true
		}
	}
	for _, alarm := range all {
		queries, _ := alarm.Get("Metrics").([]any)
		if queries == nil {
			count(alarm.Text("Namespace"), alarm.Text("MetricName"))
		}
		for _, query := range queries {
			m := template.Resource{Properties: query.(map[string]any)}
			if m.Get("MetricStat") != nil {
				count(m.Text("MetricStat.Metric.Namespace"), m.Text("MetricStat.Metric.MetricName"))
			}
		}
	}
	b.add(fmt.Sprintf("%d alarms over %d metrics", len(all), metrics), float64(metrics)*b.of("alarm-metric-month"))
	b.add(fmt.Sprintf("%d metrics of our own", len(own)), float64(len(own))*b.of("custom-metric-month"))
}

// endpoints cost by hour and zone; those of gateways nothing.
func (b *bill) endpoints(all []template.Resource, _ template.Template) {
	zones := 0
	for _, endpoint := range all {
		if endpoint.Text("VpcEndpointType") == "Interface" {
			zones += len(template.Texts(endpoint.Get("SubnetIds")))
		}
	}
	b.add(fmt.Sprintf("%d interface endpoints in their zones", zones), float64(zones)*b.of("interface-endpoint-hour")*b.Hours)
}

// tasks: as many as there always are, with their size, addresses and polls of two queues.
func (b *bill) tasks(all []template.Resource, t template.Template) {
	for _, service := range all {
		least := 0.0
		for _, target := range t.Of("AWS::ApplicationAutoScaling::ScalableTarget") {
			least = target.Number("MinCapacity")
		}
		for _, task := range t.Of("AWS::ECS::TaskDefinition") {
			arch := "amd64"
			if task.Text("RuntimePlatform.CpuArchitecture") == "ARM64" {
				arch = "arm64"
			}
			cpu, err1 := strconv.ParseFloat(task.Text("Cpu"), 64)
			memory, err2 := strconv.ParseFloat(task.Text("Memory"), 64)
			if err1 != nil || err2 != nil {
				b.errs = append(b.errs, "the size of task "+task.ID)
			}
			each := cpu/1024*b.of("fargate-vcpu-hour-"+arch) + memory/1024*b.of("fargate-gb-hour-"+arch)
			b.add(fmt.Sprintf("%.0f Fargate tasks", least), least*each*b.Hours)
		}
		if service.Text("NetworkConfiguration.AwsvpcConfiguration.AssignPublicIp") == "ENABLED" {
			b.add("their public addresses", least*b.of("public-address-hour")*b.Hours)
		}
		requests := least * 2 * b.Hours * 3600 / b.idle("poll-seconds")
		b.add(fmt.Sprintf("%.0f empty polls by tasks", requests), requests*b.of("sqs-request"))
		b.add("what they read, sweeping", least*b.Hours*3600/b.idle("task-sweep-every-seconds")*b.idle("sweep-read-units")*b.of("dynamodb-read-unit"))
	}
}
