package awsclient

import (
	"errors"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Advice is what a person does about an error of a first request, or ""; endpoint is "" for AWS itself.
func Advice(err error, endpoint string) string {
	var code string
	var api smithy.APIError
	if errors.As(err, &api) {
		code = api.ErrorCode()
	}
	switch {
	case err == nil:
		return ""
	case strings.Contains(err.Error(), "get credentials"): // the SDK has no name for it
		return "no credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE (an endpoint that is not on this machine needs them too)"
	case isClock(code, err):
		return "the clock of this machine is wrong, or the secret key: look at both"
	}
	switch code {
	case "UnrecognizedClientException", "InvalidClientTokenId", "InvalidAccessKeyId", "IncompleteSignature", "IncompleteSignatureException", "MissingAuthenticationToken":
		return "the credentials are not known there: look at AWS_ACCESS_KEY_ID, AWS_PROFILE and the region"
	case "ExpiredToken", "ExpiredTokenException":
		return "the credentials have expired: log in again"
	case "AccessDenied", "AccessDeniedException":
		return "these credentials may not do that: they need the rights of the stack's workers"
	}
	switch {
	case isRefusedConnection(err) && endpoint != "":
		return "nothing answers at " + endpoint + ": see that it is running (LocalStack: make localstack), or name another --endpoint"
	case isRefusedConnection(err):
		return "AWS cannot be reached from here: look at the network and the region"
	case isNoService(code, err) && endpoint != "":
		return "what answers at " + endpoint + " is not AWS or LocalStack, or is unwell: look at --endpoint"
	}
	return ""
}

// isClock says that a request's time or its signature was not taken.
func isClock(code string, err error) bool {
	switch code {
	case "InvalidSignatureException", "SignatureDoesNotMatch", "RequestTimeTooSkewed", "RequestExpired":
		return true
	}
	return strings.Contains(err.Error(), "Signature expired") || strings.Contains(err.Error(), "Signature not yet current")
}

// isRefusedConnection says that no answer came at all: no such name, no listener, or silence.
func isRefusedConnection(err error) bool {
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) && response.HTTPStatusCode() != 0 {
		return false
	}
	var sent *smithyhttp.RequestSendError
	var network net.Error
	return errors.As(err, &sent) || errors.As(err, &network) || errors.Is(err, os.ErrDeadlineExceeded)
}

// isNoService says that the answer was none that a service of AWS gives.
func isNoService(code string, err error) bool {
	var undone *smithy.DeserializationError
	var response *smithyhttp.ResponseError
	return errors.As(err, &undone) || code == "UnknownError" ||
		errors.As(err, &response) && response.HTTPStatusCode() >= http.StatusInternalServerError && !isAWS(response)
}

// isAWS says that an answer carries the id that every service of AWS gives its answers.
func isAWS(response *smithyhttp.ResponseError) bool {
	return response.Response != nil && response.Response.Header.Get("X-Amzn-Requestid") != ""
}
