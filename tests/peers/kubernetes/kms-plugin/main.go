// A KMS v2 plug-in for tests, on the library that real plug-ins use.
//
// The id of its key is in a file, and the key is made from the id: tests rotate the key by writing another id. When the
// file holds "broken", the plug-in says that it is not healthy.
package main

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/kms/pkg/service"
)

const annotation = "nonce.kms.bareboat.example.com"

type plugin struct{ keyFile string }

func (p *plugin) keyID() (string, error) {
	text, err := os.ReadFile(p.keyFile)
	return strings.TrimSpace(string(text)), err
}

func gcm(keyID string) (cipher.AEAD, error) {
	key := sha256.Sum256([]byte(keyID))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func (p *plugin) Status(context.Context) (*service.StatusResponse, error) {
	id, err := p.keyID()
	if err != nil {
		return nil, err
	}
	health := "ok"
	if id == "broken" {
		health = "the vault is sealed"
	}
	return &service.StatusResponse{Version: "v2", Healthz: health, KeyID: id}, nil
}

func (p *plugin) Encrypt(_ context.Context, _ string, data []byte) (*service.EncryptResponse, error) {
	id, err := p.keyID()
	if err != nil {
		return nil, err
	}
	sealer, err := gcm(id)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, sealer.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	return &service.EncryptResponse{
		Ciphertext:  sealer.Seal(nil, nonce, data, nil),
		KeyID:       id,
		Annotations: map[string][]byte{annotation: nonce},
	}, nil
}

func (p *plugin) Decrypt(_ context.Context, _ string, req *service.DecryptRequest) ([]byte, error) {
	opener, err := gcm(req.KeyID)
	if err != nil {
		return nil, err
	}
	nonce := req.Annotations[annotation]
	if len(nonce) != opener.NonceSize() {
		return nil, errors.New("the annotation with the nonce is missing")
	}
	return opener.Open(nil, nonce, req.Ciphertext, nil)
}

func main() {
	socket := flag.String("socket", "", "the path of the socket")
	keyFile := flag.String("key-id-file", "", "the file with the id of the key")
	flag.Parse()
	if *socket == "" || *keyFile == "" {
		flag.Usage()
		os.Exit(2)
	}
	server := service.NewGRPCService(*socket, 5*time.Second, &plugin{keyFile: *keyFile})
	fmt.Println("listening")
	if err := server.ListenAndServe(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
