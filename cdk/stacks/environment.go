package stacks

import (
	"strconv"
	"strings"

	"holdfast/pkg/config"
)

// processes of the deployment.
func (s Settings) processes() []config.Process {
	all := []config.Process{config.Reap, config.API}
	if s.Lambda() {
		all = append(all, config.Control, config.Work)
	}
	if s.Fargate() {
		all = append(all, config.Workd)
	}
	return all
}

// environment is what a process is told: of what it reads, all that is set here. The process would refuse a wrong one,
// so the template does.
func (s Settings) environment(process config.Process, bucket string) map[string]string {
	all := map[string]string{
		config.StackVar:           s.Stack,
		config.BackendVar:         config.AWSBackend,
		config.EndpointVar:        strings.ReplaceAll(s.Endpoint, "{process}", string(process)),
		config.BucketVar:          bucket,
		config.PolicyVar:          s.PolicyText,
		config.ModelVar:           s.Model,
		config.ModelURLVar:        s.ModelURL,
		config.ModelKeySecretVar:  s.ModelKeySecret,
		config.PriceAsVar:         s.PriceAs,
		config.TokensPerMinuteVar: strconv.Itoa(s.Quota),
		config.MaxCostVar:         s.MaxCost,
		config.TenantFromVar:      s.TenantFrom,
		config.InFlightVar:        strconv.Itoa(s.InFlight),
		config.PaceVar:            s.OfflinePace,
		config.FailVar:            s.OfflineFail,
		config.StopTimeVar:        config.MostStopTime.String(),
	}
	told := map[string]string{}
	for _, setting := range config.Settings(process) {
		if value := all[setting.Name]; value != "" {
			told[setting.Name] = value
		}
	}
	return told
}
