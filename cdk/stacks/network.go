package stacks

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/jsii-runtime-go"
)

// network is where tasks run: a VPC that was there, or one that is made. None has a NAT gateway. In the one that is made
// tasks reach AWS through endpoints and nothing else; with `-c public=true` they have addresses of their own instead,
// because a model outside AWS is reached only from there, and nothing reaches them.
func (w *workers) network() (vpc awsec2.IVpc, subnets *awsec2.SubnetSelection, tasks awsec2.SecurityGroup) {
	if w.VPC != "" {
		vpc, subnets = w.existingNetwork()
		return vpc, subnets, w.group(vpc, "Tasks", "Tasks of Holdfast "+w.Stack+": nothing comes in.")
	}
	return w.newNetwork()
}

// group is a security group that lets nothing in.
func (w *workers) group(vpc awsec2.IVpc, id, says string) awsec2.SecurityGroup {
	return awsec2.NewSecurityGroup(w.stack, text(id), &awsec2.SecurityGroupProps{Vpc: vpc, Description: text(says)})
}

func (w *workers) newNetwork() (awsec2.IVpc, *awsec2.SubnetSelection, awsec2.SecurityGroup) {
	kind := awsec2.SubnetType_PRIVATE_ISOLATED
	if w.Public {
		kind = awsec2.SubnetType_PUBLIC
	}
	logs := w.logGroup("FlowLog", "/holdfast/"+w.Stack+"/flow")
	vpc := awsec2.NewVpc(w.stack, text("Network"), &awsec2.VpcProps{
		MaxAzs: number(w.Zones), NatGateways: number(0),
		SubnetConfiguration: &[]*awsec2.SubnetConfiguration{{
			Name: text("tasks"), SubnetType: kind, CidrMask: number(24), MapPublicIpOnLaunch: onlyIf(w.Public, false),
		}},
		RestrictDefaultSecurityGroup: yes(false), // that needs a function of its own; nothing is in the default group
		FlowLogs: &map[string]*awsec2.FlowLogOptions{"Refused": {
			Destination: awsec2.FlowLogDestination_ToCloudWatchLogs(logs, nil), TrafficType: awsec2.FlowLogTrafficType_REJECT,
		}},
	})
	// These two are free of charge.
	vpc.AddGatewayEndpoint(text("DynamoDB"), &awsec2.GatewayVpcEndpointOptions{Service: awsec2.GatewayVpcEndpointAwsService_DYNAMODB()})
	vpc.AddGatewayEndpoint(text("S3"), &awsec2.GatewayVpcEndpointOptions{Service: awsec2.GatewayVpcEndpointAwsService_S3()})
	tasks := w.group(vpc, "Tasks", "Tasks of Holdfast "+w.Stack+": nothing comes in.")
	if !w.Public {
		w.addEndpoints(vpc, tasks)
	}
	return vpc, &awsec2.SubnetSelection{SubnetType: kind}, tasks
}

// addEndpoints for what a task asks of AWS beside the store and the blobs: its image, its queues, its log. Each costs by
// the hour and zone. Only tasks reach them.
func (w *workers) addEndpoints(vpc awsec2.Vpc, tasks awsec2.SecurityGroup) {
	group := w.group(vpc, "Endpoints", "Endpoints of Holdfast "+w.Stack+": its tasks come in.")
	group.AddIngressRule(tasks, awsec2.Port_Tcp(number(443)), text("tasks"), nil)
	for _, endpoint := range []struct {
		name    string
		service awsec2.InterfaceVpcEndpointAwsService
	}{
		{"Images", awsec2.InterfaceVpcEndpointAwsService_ECR()},
		{"ImageLayers", awsec2.InterfaceVpcEndpointAwsService_ECR_DOCKER()},
		{"Queues", awsec2.InterfaceVpcEndpointAwsService_SQS()},
		{"Logs", awsec2.InterfaceVpcEndpointAwsService_CLOUDWATCH_LOGS()},
	} {
		vpc.AddInterfaceEndpoint(text(endpoint.name), &awsec2.InterfaceVpcEndpointOptions{
			Service: endpoint.service, SecurityGroups: &[]awsec2.ISecurityGroup{group}, Open: yes(false),
		})
	}
}

// existingNetwork is a VPC that was there, with its subnets, as they are: nothing is looked up or added.
func (w *workers) existingNetwork() (awsec2.IVpc, *awsec2.SubnetSelection) {
	zones := make([]string, len(w.Subnets)) // not used, and not known without asking the account
	for i := range zones {
		zones[i] = "zone"
	}
	vpc := awsec2.Vpc_FromVpcAttributes(w.stack, text("Network"), &awsec2.VpcAttributes{
		VpcId: text(w.VPC), AvailabilityZones: jsii.Strings(zones...), PrivateSubnetIds: texts(w.Subnets...),
	})
	awscdk.Annotations_Of(vpc).AcknowledgeWarning(text("@aws-cdk/aws-ec2:noSubnetRouteTableId"), text("No route is added to these subnets."))
	return vpc, &awsec2.SubnetSelection{Subnets: vpc.PrivateSubnets()}
}

// onlyIf is the value where a condition holds, else nil.
func onlyIf(holds, value bool) *bool {
	if !holds {
		return nil
	}
	return &value
}
