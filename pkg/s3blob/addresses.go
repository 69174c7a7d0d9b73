package s3blob

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// PutURL is where the body may be put with an HTTP PUT that carries these headers: it must have exactly size bytes.
// The address is valid for so long.
func (s *Store) PutURL(ctx context.Context, key string, size int64, within time.Duration) (url string, headers map[string]string, err error) {
	request, err := s3.NewPresignClient(s.client, s3.WithPresignExpires(within)).PresignPutObject(ctx, &s3.PutObjectInput{
		Bucket: aws.String(s.bucket), Key: aws.String(key), ContentLength: aws.Int64(size),
	})
	if err != nil {
		return "", nil, fmt.Errorf("address to put %s: %w", key, explain(ctx, err))
	}
	headers = map[string]string{}
	for name, values := range request.SignedHeader {
		if name != "Host" && len(values) > 0 {
			headers[name] = values[0]
		}
	}
	return request.URL, headers, nil
}

// GetURL is where a blob may be got, for so long; S3 says that it is of that type.
func (s *Store) GetURL(ctx context.Context, key, contentType string, within time.Duration) (string, error) {
	request, err := s3.NewPresignClient(s.client, s3.WithPresignExpires(within)).PresignGetObject(ctx, &s3.GetObjectInput{
		Bucket: aws.String(s.bucket), Key: aws.String(key), ResponseContentType: aws.String(contentType),
	})
	if err != nil {
		return "", fmt.Errorf("address to get %s: %w", key, explain(ctx, err))
	}
	return request.URL, nil
}
