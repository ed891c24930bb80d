# `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

ARCH := $(shell uname -m | sed 's/x86_64/x64/;s/aarch64/arm64/')
# Some long tests boot an emulated PC, on x64 only.
EMULATOR := $(if $(filter x64,$(ARCH)),qemu-system-x86)
# What a host needs to hold a Kubernetes cluster, and what unpacks the Kubernetes of the tests.
CLUSTER_TOOLS := containerd runc containernetworking-plugins conntrack iptables nftables socat ethtool kmod busybox-static xz-utils python3
# What `make package` makes packages for.
ARCHITECTURES ?= amd64 arm64
# The pinned Node, and the pinned npm that installs all other packages. The machine's own npm, even an old one, installs these two.
TOOLCHAIN := .cache/toolchain/node_modules
# Not the folder .bin: npm 9 makes no link there for a program that packages of two architectures contain.
RUNTIME := $(TOOLCHAIN)/node-linux-$(ARCH)/bin
export PATH := $(CURDIR)/$(RUNTIME):$(CURDIR)/$(TOOLCHAIN)/.bin:$(CURDIR)/node_modules/.bin:$(PATH)

# V8's flags from the unit. V8 refuses a code cache that was made with other flags.
export V8_FLAGS := $(shell sed -n 's|^ExecStart=[^ ]*/node \(.*\) [^ ]*$$|\1|p' systemd/edgehostd.service)

# npm's own record of the installed packages. If it is missing or older than the lockfile, they are installed.
DEPENDENCIES := node_modules/.package-lock.json
SOURCES := $(shell find src build docs/openapi.json docs/platform-openapi.json -type f -not -name '*.md' 2>/dev/null) package.json systemd/edgehostd.service

.PHONY: help run run-platform test test-real screens check types lint import-law formatting documents journeys e2e e2e-long docs bench build package install uninstall \
  clean

help: ## list the targets
	@sed -nE 's/^([a-z0-9-]+):.*## (.*)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | while IFS='|' read -r name what; do \
	  printf '  make %-10s %s\n' "$$name" "$$what"; done

run: dist/main.cjs ## set up and run the daemon in the foreground on https://0.0.0.0:5080, all state under .run/
	@exec build/run

run-platform: dist/main.cjs ## run the platform in the foreground on https://0.0.0.0:5443, all state under .run-platform/
	@exec build/run-platform

# What the tests on this machine use of it.
TESTED := pamtester openssl curl zstd iproute2 iptables nftables nginx-light

test: $(DEPENDENCIES) ## unit, API, platform and host tests, the quick ones
	@build/debian-packages $(TESTED) || echo "make test: without these packages the tests that need them are skipped"
	vitest run --project unit --project platform

test-real: $(DEPENDENCIES) ## tests with a real Kubernetes, series of kills, very many files and delays of PAM
	@build/debian-packages $(TESTED) chromium firefox-esr || echo "make test-real: without these packages the tests that need them are skipped"
	vitest run --project real --project real-platform

screens: $(DEPENDENCIES) ## each page in each look: examined, and written to dist/screens to be looked at; sessions, restarts and long lists in a browser
	@build/debian-packages chromium
	vitest run --project screens --project screens-platform

check: $(DEPENDENCIES) ## types, lint, import law, formatting, generated documents
	@$(MAKE) --jobs=2 --output-sync lint types import-law formatting documents

# The parts of `check`.
types:
	tsc
	tsc --project src/console

lint:
	eslint .

import-law:
	depcruise src

# Not `.`: Prettier walks .cache too, where `journeys` installs a Debian at the same time.
formatting:
	prettier --check --log-level warn '*.{cjs,js,json,md,ts}' bench build certs docs src systemd test

documents:
	node build/docs.ts --check
	node build/platform-docs.ts --check
	REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true redocly lint --config build/redocly.yaml docs/openapi.json
	REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true redocly lint --config build/redocly-platform.yaml docs/platform-openapi.json

# One way through each door of the installed programs. An upgrade of Kubernetes takes six minutes: it is in e2e.
JOURNEYS := journey service content platform cluster/first-hour cluster/platform network-trial
NO_JOURNEY := another version of Kubernetes

journeys e2e: $(DEPENDENCIES)
	@build/debian-packages systemd-container debootstrap curl openssl dbus systemd-timesyncd iproute2 tmux busybox-static \
	  e2fsprogs xfsprogs skopeo podman containerd docker-registry docker.io $(if $(filter e2e,$@),chromium) \
	  $(CLUSTER_TOOLS)
	@$(MAKE) package ARCHITECTURES=$$(dpkg --print-architecture)
	vitest run --project e2e --project e2e-cluster \
	  $(if $(filter journeys,$@),$(JOURNEYS:%=test/e2e/%.test.ts) --testNamePattern '^(?!.*$(NO_JOURNEY))')

journeys: ## one way through each door: an installed host, content, a platform, a cluster, a platform with two hosts, the network (root)
e2e: ## tests in hosts booted by systemd, with the installed packages (root)

e2e-long: $(DEPENDENCIES) ## long tests: an emulated PC, power cuts, killed platforms, and the README's commands on a fresh Debian (root, network)
	@build/debian-packages systemd-container debootstrap curl openssl git iproute2 e2fsprogs xfsprogs $(CLUSTER_TOOLS) $(EMULATOR)
	@$(MAKE) package ARCHITECTURES=$$(dpkg --print-architecture)
	vitest run --project e2e-long

docs: $(DEPENDENCIES) ## write the generated documents of docs/
	node build/docs.ts
	node build/platform-docs.ts

bench: dist/main.cjs ## figures against bare Fastify on the same runtime
	@build/debian-packages pamtester curl skopeo nginx-light || true
	node bench/run.ts

build: dist/main.cjs ## bundle daemon and command line into dist/

package: dist/main.cjs ## dist/*.deb of edgehostd, edgeplatform (each architecture) and edgehostd-kubernetes, dist/edgehostctl-<version>.tgz for npm
	@node build/package.ts $(ARCHITECTURES)
	@node build/npm-package.ts

install: dist/main.cjs ## install the files of the package below DESTDIR
	@node build/install.ts install '$(DESTDIR)'

uninstall: $(DEPENDENCIES) ## remove these files, except configuration and state
	@node build/install.ts uninstall '$(DESTDIR)'

clean: ## remove everything that was made here, except Debian packages
	rm -rf dist .run .run-platform .cache coverage node_modules
	if [ "$$(id -u)" = 0 ]; then rm -f /etc/pam.d/edgehostd-dev; fi

$(DEPENDENCIES): package-lock.json package.json | $(TOOLCHAIN)/.package-lock.json
	npm ci --loglevel=error
	@# So that npm and editors, which start `node` from this folder, use the pinned Node too.
	@ln -sf ../../$(RUNTIME)/node node_modules/.bin/node
	@touch $@

# Installed into another folder first: the npm that runs here may be the one that is replaced.
$(TOOLCHAIN)/.package-lock.json: $(addprefix build/toolchain/,package.json package-lock.json .npmrc)
	@rm -rf .cache/toolchain.new && mkdir -p .cache/toolchain.new
	@cp $^ .cache/toolchain.new
	cd .cache/toolchain.new && npm ci --loglevel=error
	@# Node is an optional dependency, so that npm skips the one of the other architecture; this one has to be there.
	@.cache/toolchain.new/node_modules/node-linux-$(ARCH)/bin/node --version >/dev/null
	@rm -rf .cache/toolchain && mv .cache/toolchain.new .cache/toolchain
	@touch $@

dist/main.cjs: $(DEPENDENCIES) $(SOURCES)
	@node build/bundle.ts
	@timeout 120 node $(V8_FLAGS) dist/main.cjs --prime-cache
	@echo 'built dist/main.cjs'
