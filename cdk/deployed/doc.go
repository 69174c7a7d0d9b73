// Package deployed has the trials of a deployment: both stacks on LocalStack, deployed by cdklocal from the templates that
// go to AWS, and real reviews that are completed by what was deployed. Its tests have the build tag deployed, need
// LocalStack and what `make test-deploy` builds, and take some minutes.
//
// It may not: import the engine. What it knows it is told by the command line, the functions' answers and the services.
package deployed
