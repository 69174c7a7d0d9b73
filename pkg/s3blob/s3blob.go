// Package s3blob keeps blobs in an S3 bucket: documents, definitions, results and whatever is too large for an item.
//
// It may not: decide anything that [pipeline.Blobs] does not say, let a type of the AWS SDK out, or list; it deletes
// what it is told by key ([Store.Remove]), and a whole deployment's bucket ([Delete]).
package s3blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"holdfast/pkg/pipeline"
)

// Store is a [pipeline.Blobs] in one bucket.
type Store struct {
	client *s3.Client
	bucket string
}

var _ pipeline.Blobs = (*Store)(nil)

// New is the blobs of a bucket, which must be there: see [Create].
func New(client *s3.Client, bucket string) *Store { return &Store{client: client, bucket: bucket} }

// Bucket is the name of a deployment's bucket.
func Bucket(stack string) string { return stack + "-blobs" }

// Create makes the bucket unless it is ours already.
func Create(ctx context.Context, client *s3.Client, bucket, region string) error {
	in := &s3.CreateBucketInput{Bucket: aws.String(bucket)}
	if region != "us-east-1" { // which may not be named
		in.CreateBucketConfiguration = &types.CreateBucketConfiguration{LocationConstraint: types.BucketLocationConstraint(region)}
	}
	_, err := client.CreateBucket(ctx, in)
	var ours *types.BucketAlreadyOwnedByYou
	if errors.As(err, &ours) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("make bucket %s: %w", bucket, explain(ctx, err))
	}
	return nil
}

// Delete removes the bucket and all that is in it.
func Delete(ctx context.Context, client *s3.Client, bucket string) error {
	pages := s3.NewListObjectsV2Paginator(client, &s3.ListObjectsV2Input{Bucket: aws.String(bucket)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if isMissing(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("empty bucket %s: %w", bucket, explain(ctx, err))
		}
		for _, object := range page.Contents {
			if _, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String(bucket), Key: object.Key}); err != nil {
				return fmt.Errorf("empty bucket %s: %w", bucket, explain(ctx, err))
			}
		}
	}
	_, err := client.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: aws.String(bucket)})
	if err != nil && !isMissing(err) {
		return fmt.Errorf("delete bucket %s: %w", bucket, explain(ctx, err))
	}
	return nil
}

// PutBlob stores the body whole: S3 shows an object only once all of it has arrived.
func (s *Store) PutBlob(ctx context.Context, key string, body []byte) error {
	_, err := s.client.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(s.bucket), Key: aws.String(key), Body: bytes.NewReader(body)})
	if err != nil {
		return fmt.Errorf("put blob %s: %w", key, explain(ctx, err))
	}
	return nil
}

// readings is how often a blob is read whose body was cut off: the SDK repeats requests, not bodies.
const readings = 3

// Blob reads it.
func (s *Store) Blob(ctx context.Context, key string) (body []byte, err error) {
	for range readings {
		body, err = s.read(ctx, key)
		if err == nil || !errors.Is(err, errCut) || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("blob %s: %w", key, explain(ctx, err))
	}
	return body, nil
}

// errCut says that a body ended before its time.
var errCut = errors.New("the body was cut off")

func (s *Store) read(ctx context.Context, key string) ([]byte, error) {
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(s.bucket), Key: aws.String(key)})
	if err != nil {
		return nil, err
	}
	defer out.Body.Close()
	body, err := io.ReadAll(out.Body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCut, err)
	}
	if out.ContentLength != nil && *out.ContentLength != int64(len(body)) {
		return nil, fmt.Errorf("%w: %d of %d bytes", errCut, len(body), *out.ContentLength)
	}
	return body, nil
}

// Remove removes blobs; one that is not there is no error. In a bucket with versions they are gone for readers, and the
// bucket's own rule says when their bytes are.
func (s *Store) Remove(ctx context.Context, keys ...string) error {
	var errs []error
	for _, key := range keys {
		_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String(s.bucket), Key: aws.String(key)})
		if err != nil && codeOf(err) != "NoSuchKey" {
			errs = append(errs, fmt.Errorf("remove blob %s: %w", key, explain(ctx, err)))
		}
	}
	return errors.Join(errs...)
}

// isMissing says that there is no such object or bucket.
func isMissing(err error) bool {
	switch codeOf(err) {
	case "NoSuchKey", "NotFound", "NoSuchBucket":
		return true
	}
	return false
}

func codeOf(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// explain gives an error of the SDK the name that the ports have for it, and tells a person what to do.
func explain(ctx context.Context, err error) error {
	var response *smithyhttp.ResponseError
	var network net.Error
	switch code := codeOf(err); {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case code == "NoSuchBucket":
		return fmt.Errorf("there is no such bucket: %w (%w)", pipeline.ErrNotMade, err)
	case code == "BucketAlreadyExists":
		return fmt.Errorf("somebody else has a bucket of this name, which all of AWS shares: choose another with --bucket (%w)", err)
	case code == "InvalidBucketName":
		return fmt.Errorf("a bucket's name has 3 to 63 small letters, digits and hyphens: choose another with --bucket or --stack (%w)", err)
	case isMissing(err):
		return fmt.Errorf("%w (%w)", pipeline.ErrNotFound, err)
	case code == "SlowDown", code == "RequestTimeout", errors.Is(err, errCut), errors.As(err, &network),
		errors.As(err, &response) && response.HTTPStatusCode() >= http.StatusInternalServerError:
		return fmt.Errorf("%w (%w)", pipeline.ErrBusy, err)
	}
	return err
}
