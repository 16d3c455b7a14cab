// Command helper is the one static program of the testbed: what the containers of tests run, and what joins
// a node's network namespace with the outside. It needs nothing from the image that it lies in.
//
//	pause | mnnvl-workload          wait for SIGTERM (also when it is called by one of these names)
//	list DIR                        names and kinds of the entries, one a line
//	cat FILE                        its content
//	open PATH                       "ok", or the name of the error, of opening it for reading
//	mknod PATH MAJOR MINOR          make a character device
//	exit CODE
//	forward NETNS LISTEN TARGET     TCP from LISTEN inside the namespace to TARGET outside
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const dialLimit = 5 * time.Second

func main() {
	words := os.Args[1:]
	if name := filepath.Base(os.Args[0]); name == "pause" || name == "mnnvl-workload" {
		words = []string{"pause"}
	}
	if len(words) == 0 {
		fail(errors.New("no verb"))
	}
	verbs := map[string]struct {
		arguments int
		run       func([]string) error
	}{
		"pause":          {0, pause},
		"mnnvl-workload": {0, pause},
		"list":           {1, list},
		"cat":            {1, cat},
		"open":           {1, open},
		"mknod":          {3, mknod},
		"exit":           {1, exit},
		"forward":        {3, forward},
	}
	verb, known := verbs[words[0]]
	if !known || len(words)-1 != verb.arguments {
		fail(fmt.Errorf("unknown verb or wrong number of arguments: %q", words))
	}
	if err := verb.run(words[1:]); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "helper:", err)
	os.Exit(1)
}

// As first process of a pid namespace it also reaps whatever was left to it.
func pause([]string) error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for one := range signals {
		if one != syscall.SIGCHLD {
			return nil
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != nil || pid <= 0 {
				break
			}
		}
	}
	return nil
}

func list(words []string) error {
	entries, err := os.ReadDir(words[0])
	if err != nil {
		return err
	}
	for _, entry := range entries {
		var stat syscall.Stat_t
		if err := syscall.Lstat(filepath.Join(words[0], entry.Name()), &stat); err != nil {
			return err
		}
		kind := entry.Type().String()[:1]
		if stat.Mode&syscall.S_IFMT == syscall.S_IFCHR {
			fmt.Printf("c %s %d:%d %o\n", entry.Name(), stat.Rdev>>8&0xfff, stat.Rdev&0xff, stat.Mode&0o777)
		} else {
			fmt.Printf("%s %s\n", kind, entry.Name())
		}
	}
	return nil
}

func cat(words []string) error {
	content, err := os.ReadFile(words[0])
	if err == nil {
		_, err = os.Stdout.Write(content)
	}
	return err
}

func open(words []string) error {
	file, err := os.Open(words[0])
	names := map[syscall.Errno]string{
		syscall.ENXIO: "ENXIO", syscall.EPERM: "EPERM", syscall.EACCES: "EACCES", syscall.ENOENT: "ENOENT",
	}
	var number syscall.Errno
	switch {
	case err == nil:
		file.Close()
		fmt.Println("ok")
	case errors.As(err, &number) && names[number] != "":
		fmt.Println(names[number])
	default:
		return err
	}
	return nil
}

func mknod(words []string) error {
	major, err := strconv.Atoi(words[1])
	if err != nil {
		return err
	}
	minor, err := strconv.Atoi(words[2])
	if err != nil {
		return err
	}
	return syscall.Mknod(words[0], syscall.S_IFCHR|0o666, major<<8|minor)
}

func exit(words []string) error {
	code, err := strconv.Atoi(words[0])
	if err == nil {
		os.Exit(code)
	}
	return err
}

// inside runs work on a thread that has joined the network namespace; sockets made there stay there.
// The thread is never used for anything else: it ends with its goroutine.
func inside(namespace string, work func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		file, err := os.Open(namespace)
		if err == nil {
			defer file.Close()
			_, _, number := syscall.RawSyscall(setns, file.Fd(), syscall.CLONE_NEWNET, 0)
			if number != 0 {
				err = fmt.Errorf("setns %s: %w", namespace, number)
			} else {
				err = work()
			}
		}
		result <- err
	}()
	return <-result
}

func forward(words []string) error {
	var listener net.Listener
	err := inside(words[0], func() (err error) {
		listener, err = net.Listen("tcp", words[1])
		return err
	})
	if err != nil {
		return err
	}
	for {
		near, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			far, err := net.DialTimeout("tcp", words[2], dialLimit)
			if err != nil {
				near.Close()
				return
			}
			join(near, far)
		}()
	}
}

// join copies both ways until both ends have said all.
func join(near, far net.Conn) {
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
		both.Add(1)
		go func() {
			defer both.Done()
			io.Copy(pair[0], pair[1])
			if half, can := pair[0].(interface{ CloseWrite() error }); can {
				half.CloseWrite()
			}
		}()
	}
	both.Wait()
	near.Close()
	far.Close()
}
