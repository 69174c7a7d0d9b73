package stacks

import (
	"encoding/json"

	gateway "github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2authorizers"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2integrations"

	"holdfast/pkg/config"
)

// Requests a second that the API lets through, and at once.
const (
	apiRate  = 50
	apiBurst = 100
)

// addAPI makes the HTTP API. Every route has the authorizer; there is no route for anybody else.
func (w *workers) addAPI() {
	fn := w.function(config.API)
	authorizer := w.authorizer()
	http := gateway.NewHttpApi(w.stack, text("Http"), &gateway.HttpApiProps{
		ApiName: text(w.Stack), DefaultAuthorizer: authorizer, CreateDefaultStage: yes(false),
	})
	integration := awsapigatewayv2integrations.NewHttpLambdaIntegration(text("Api"), fn, nil)
	for _, route := range config.Routes() {
		http.AddRoutes(&gateway.AddRoutesOptions{
			Path: text(route.Path), Methods: &[]gateway.HttpMethod{gateway.HttpMethod(route.Method)}, Integration: integration, Authorizer: authorizer,
		})
	}
	w.addStage(http)
	output(w.stack, "ApiUrl", http.ApiEndpoint())
}

// authorizer lets in whoever shows a token of the issuer, or signs a request with IAM.
func (w *workers) authorizer() gateway.IHttpRouteAuthorizer {
	if w.Issuer == "" {
		return awsapigatewayv2authorizers.NewHttpIamAuthorizer()
	}
	return awsapigatewayv2authorizers.NewHttpJwtAuthorizer(text("Tokens"), text(w.Issuer), &awsapigatewayv2authorizers.HttpJwtAuthorizerProps{
		JwtAudience: texts(w.Audience...),
	})
}

func (w *workers) addStage(http gateway.HttpApi) {
	logs := w.logGroup("AccessLog", "/aws/apigateway/"+w.Stack)
	stage := gateway.NewHttpStage(w.stack, text("Stage"), &gateway.HttpStageProps{
		HttpApi: http, StageName: text("$default"), AutoDeploy: yes(true),
		Throttle: &gateway.ThrottleSettings{RateLimit: number(apiRate), BurstLimit: number(apiBurst)},
	})
	line := map[string]string{}
	for name, variable := range map[string]string{
		"request": "requestId", "at": "requestTime", "route": "routeKey", "status": "status", "bytes": "responseLength",
		"ms": "responseLatency", "error": "error.message", "from": "identity.sourceIp",
	} {
		line[name] = "$context." + variable
	}
	format, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	stage.Node().DefaultChild().(gateway.CfnStage).SetAccessLogSettings(&gateway.CfnStage_AccessLogSettingsProperty{
		DestinationArn: logs.LogGroupArn(), Format: text(string(format)),
	})
}
