// Go's net/http over TLS: PORT NAME PASSWORD CA. What is not as it should be ends it with an error.
package main

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

var port, name, password = os.Args[1], os.Args[2], os.Args[3]

// onlyReader hides the length of a body, so that it is sent in chunks.
type onlyReader struct{ io.Reader }

func check(isRight bool, format string, values ...any) {
	if !isRight {
		fmt.Fprintf(os.Stderr, format+"\n", values...)
		os.Exit(1)
	}
}

func noise() []byte {
	block := sha256.Sum256([]byte("plimsoll"))
	var all []byte
	for len(all) < 3_000_000 {
		block = sha256.Sum256(block[:])
		all = append(all, block[:]...)
	}
	return all
}

func client(roots *x509.CertPool, version uint16) *http.Client {
	transport := &http.Transport{
		ForceAttemptHTTP2:     true,
		ExpectContinueTimeout: 10 * time.Second,
		TLSClientConfig: &tls.Config{
			RootCAs:            roots,
			MinVersion:         version,
			MaxVersion:         version,
			ClientSessionCache: tls.NewLRUClientSessionCache(8),
		},
	}
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}
}

func send(client *http.Client, method, path string, body io.Reader, fields ...string) (*http.Response, []byte) {
	request, err := http.NewRequest(method, "https://127.0.0.1:"+port+path, body)
	check(err == nil, "%v", err)
	request.SetBasicAuth(name, password)
	for at := 0; at < len(fields); at += 2 {
		request.Header.Set(fields[at], fields[at+1])
	}
	answer, err := client.Do(request)
	check(err == nil, "%s %s: %v", method, path, err)
	defer answer.Body.Close()
	came, err := io.ReadAll(answer.Body)
	check(err == nil, "%s %s: %v", method, path, err)
	return answer, came
}

func goThrough(roots *x509.CertPool, version uint16) {
	client, bytes_ := client(roots, version), noise()
	bodies := map[string]func() io.Reader{
		"/files/sized":   func() io.Reader { return bytes.NewReader(bytes_) },
		"/files/chunked": func() io.Reader { return onlyReader{bytes.NewReader(bytes_)} },
	}
	for path, body := range bodies {
		for _, fields := range [][]string{{}, {"Expect", "100-continue"}} {
			answer, came := send(client, "PUT", path, body(), fields...)
			check(answer.StatusCode == 201 || answer.StatusCode == 204, "%s: %d %s", path, answer.StatusCode, came)
			check(answer.Proto == "HTTP/1.1" && answer.TLS.Version == version, "%s %x", answer.Proto, answer.TLS.Version)
		}
		answer, came := send(client, "GET", path, nil)
		check(answer.StatusCode == 200 && bytes.Equal(came, bytes_), "%s: %d", path, answer.StatusCode)
		answer, came = send(client, "GET", path, nil, "Range", "bytes=1000-1999")
		check(answer.StatusCode == 206 && bytes.Equal(came, bytes_[1000:2000]), "%s: %d", path, answer.StatusCode)
		client.CloseIdleConnections()
		answer, _ = send(client, "DELETE", path, nil)
		check(answer.StatusCode == 204 && answer.TLS.DidResume, "%d %v", answer.StatusCode, answer.TLS.DidResume)
	}
}

func main() {
	pem, err := os.ReadFile(os.Args[4])
	check(err == nil, "%v", err)
	roots := x509.NewCertPool()
	check(roots.AppendCertsFromPEM(pem), "no certificate in %s", os.Args[4])
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		goThrough(roots, version)
	}
	_, err = client(nil, tls.VersionTLS13).Get("https://127.0.0.1:" + port + "/healthz")
	var unknown x509.UnknownAuthorityError
	check(errors.As(err, &unknown), "an unknown authority: %v", err)
	fmt.Println("done")
}
