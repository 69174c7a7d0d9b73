package api

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"unicode"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/pkg/config"
)

// maxTenant is the longest name of a tenant, in bytes.
const maxTenant = 256

// tenantOf is whose jobs a caller's are, from what API Gateway says of who it is. Without that nobody is answered,
// whatever the setting: a route without an authorizer is a mistake.
func tenantOf(e events.APIGatewayV2HTTPRequest, from config.TenantFrom) (string, error) {
	who := e.RequestContext.Authorizer
	if who == nil || who.IAM == nil && who.JWT == nil && who.Lambda == nil {
		return "", refuse(http.StatusUnauthorized, "this request says not who you are: sign it, or send a token")
	}
	tenant, missing := "", ""
	switch from.Kind {
	case config.TenantOnly:
		tenant = from.Value
	case config.TenantAccount:
		if who.IAM != nil {
			tenant = who.IAM.AccountID
		}
		missing = "the account that signed it"
	case config.TenantUser:
		if who.IAM != nil {
			tenant = role(who.IAM.UserARN)
		}
		missing = "the user or role that signed it"
	case config.TenantClaim:
		tenant = claim(who, from.Value)
		missing = fmt.Sprintf("the claim %q", from.Value)
	}
	switch {
	case tenant == "":
		return "", refuse(http.StatusForbidden, "whose jobs are meant is not known: the request does not have %s", missing)
	case len(tenant) > maxTenant || strings.ContainsFunc(tenant, func(c rune) bool { return !unicode.IsPrint(c) }):
		return "", refuse(http.StatusForbidden, "whose jobs are meant is no name: at most %d printable characters", maxTenant)
	}
	return tenant, nil
}

// tenantKey is the tenant as a part of a blob's key, whatever is in its name.
func (r *request) tenantKey() string {
	sum := sha256.Sum256([]byte(r.tenant))
	return hex.EncodeToString(sum[:8])
}

// role is the role of an assumed one, whatever its session's name.
func role(arn string) string {
	if !strings.Contains(arn, ":assumed-role/") {
		return arn
	}
	parts := strings.Split(arn, "/")
	return strings.Join(parts[:min(2, len(parts))], "/")
}

// claim is what a token, or an authorizer of the deployment's own, says.
func claim(who *events.APIGatewayV2HTTPRequestContextAuthorizerDescription, name string) string {
	if who.JWT != nil {
		return who.JWT.Claims[name]
	}
	text, _ := who.Lambda[name].(string)
	return text
}
