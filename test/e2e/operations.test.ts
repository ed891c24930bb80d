import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { kubernetesPackage } from './host/package.ts'
import { bootEdgehostd, type Edgehostd } from './host/edgehostd.ts'

// Every command of docs/operations.md, typed as documented on a host that has just been installed. Values for placeholders
// are in this file.

const document = readFileSync(join(import.meta.dirname, '../../docs/operations.md'), 'utf8')
const right = 'right canary 1118'

/** How a command is tried. */
interface Trial {
  /** Replacements for parts of the command. */
  readonly with?: Readonly<Record<string, string>>
  /** Commands before and after it, in root's bash. */
  readonly before?: string
  readonly after?: string
  /** Its output. */
  readonly shows?: RegExp
  /** Its exit code; 0 by default. */
  readonly exitCode?: number
}

/** Why a command cannot be tried here, and where it is tried. */
type Reason = string

const newKey = 'openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem'
const start = 'systemctl start edgehostd.socket edgehostd.service'

const openRegistry =
  "printf 'content:\\n  registry:\\n    anonymous: true\\n' >/etc/edgehostd/config.d/registry.yaml"

const buildBundle = 'echo text > note; edgehostctl content build --file note=note --output bundle.tar.zst'

const ofCluster = 'needs a cluster: test/e2e/cluster/life.test.ts'
const ofChange = 'needs a cluster: test/host/cluster/commands'
const ofPlatform = 'needs a platform: test/e2e/connected-hosts.test.ts'
const ofPackage = 'ends the host of the others: test/e2e/package.test.ts, test/e2e/cluster/adoption.test.ts'

const commands: Readonly<Record<string, Trial | Reason>> = {
  'systemctl status edgehostd.socket edgehostd.service': { shows: /active \(running\)/ },
  'sudo edgehostctl status': { shows: /Fingerprint/i },
  'edgehostctl --host <host> login <user>': 'asks on a terminal: ctl-terminal.test.ts',
  'man edgehostctl': { shows: /edgehostctl/i },
  'edgehostctl forget <host>': { with: { '<host>': 'localhost' }, before: 'login' },
  'edgehostctl --host <host> --fingerprint <SHA256> login <user> --password-stdin < file': {
    before: `printf '%s\\n' '${right}' > file`,
    with: { '<host>': 'localhost', '<SHA256>': '"$(fingerprint)"', '<user>': 'anna' },
    after: 'edgehostctl forget localhost',
  },
  'edgehostctl --host <host> -o json …': {
    before: 'login',
    with: { '<host>': 'localhost', '…': 'status' },
    shows: /^\{/,
    after: 'edgehostctl forget localhost',
  },
  'source <(edgehostctl completion bash)': { after: 'complete -p edgehostctl' },
  'sudo edgehostctl support': { shows: /\.tar\.zst holds \d+ files/ },
  'edgehostctl platform disconnect': ofPlatform,
  'edgeplatformctl token create hall-b --maximum-hosts 3 > token': ofPlatform,
  'sudo edgeplatformctl status': ofPlatform,
  'sudo edgehostctl platform connect https://platform.plant.example --token-file token --fingerprint AB:CD:…':
    ofPlatform,
  'sudo edgehostctl platform status': { shows: /airgap/ },
  'sudo edgehostctl platform disconnect': { shows: /is not connected; nothing was to be done/ },
  // This machine has the packages on which it depends.
  'apt-get install ./edgehostd-kubernetes_*_all.deb': {
    before: 'cd /root',
    with: { 'apt-get install': 'apt-get install --yes' },
    shows: /Setting up edgehostd-kubernetes/,
    after: 'apt-get remove --yes edgehostd-kubernetes',
  },
  'edgehostctl host files list': {},
  'edgehostctl host files get NAME': 'needs a file: test/e2e/diagnosis.test.ts',
  'edgehostctl network ping TARGET': 'needs a package that this host lacks: test/e2e/diagnosis.test.ts',
  'edgehostctl network traceroute TARGET': 'needs a package that this host lacks: test/e2e/diagnosis.test.ts',
  'edgehostctl network check TARGET --kind dns|tcp|tls|mtu|registry|platform': {
    with: { TARGET: 'localhost:5080', 'dns|tcp|tls|mtu|registry|platform': 'tcp' },
  },
  'edgehostctl logs': {},
  'edgehostctl --host HOST support': 'is refused over the network: support.test.ts',
  'getent hosts NAME': { with: { NAME: 'localhost' } },
  'systemctl status edgeplatformd.socket': ofPlatform,
  'edgehostd --check-config': { shows: /the configuration is good/ },
  'edgehostd --print-config': { shows: /default/ },
  'systemctl restart edgehostd': {},
  'journalctl -u edgehostd': { shows: /listening/ },
  'journalctl -u edgehostd -p warning': {},
  'journalctl -u edgehostd | grep <ref>': {
    before: `
      printf 'log: {level: debug}\\n' > /etc/edgehostd/config.d/debug.yaml; systemctl restart edgehostd
      ref=$(curl -sk https://localhost:5080/v1/users/current | sed 's/.*"ref":"\\([^"]*\\)".*/\\1/'); sleep 1`,
    with: { '<ref>': '"$ref"' },
    shows: /users\/current/,
    after: 'rm /etc/edgehostd/config.d/debug.yaml; systemctl restart edgehostd',
  },
  'journalctl -u edgehostd -g listening': { shows: /listening/ },
  'openssl x509 -noout -fingerprint -sha256 -in /var/lib/edgehostd/tls/certificate.pem': {
    shows: /sha256 fingerprint=/i,
  },
  'curl --cacert certificate.pem https://<host>:5080/v1/ping': {
    before: 'cp /var/lib/edgehostd/tls/certificate.pem .',
    with: { '<host>': 'localhost' },
  },
  'systemctl reload edgehostd': {},
  'curl --unix-socket /run/edgehostd/edgehostd.sock http://localhost/v1/users/sessions': { shows: /"items"/ },
  // The command asks on its terminal, here script(1).
  'agetty --show-issue': {
    with: { 'agetty --show-issue': "script -qec 'agetty --show-issue' /dev/null" },
    shows: /SHA-?256/i,
  },
  [newKey]: {},
  'openssl pkey -in key.pem -pubout | base64 -w 0': { before: newKey, shows: /^LS0tLS1/ },
  'openssl dgst -sha256 -sign key.pem -out shop.sig shop.tar.zst': {
    before: `${newKey}; echo archive > shop.tar.zst`,
    after: 'test -s shop.sig',
  },
  'curl ... -F uploadFile=@shop.tar.zst -F signature=@shop.sig ...':
    'needs an archive of a definition: definition-signature.test.ts',
  'edgehostctl definition validate FILE': {
    before: 'echo none > shop.tar.zst',
    with: { FILE: 'shop.tar.zst' },
    exitCode: 1,
  },
  'chage -E': 'is an option and no whole command: login.test.ts',
  'chage -M': 'is an option and no whole command: login.test.ts',
  [`journalctl -u edgehostd -o cat -g '"kind":"audit"'`]: { shows: /"kind":"audit"/ },
  'journalctl -u edgehostd -g audit-head': { shows: /audit-head/ },
  'systemctl stop edgehostd.service': { after: start },
  'mv edgehostd.db edgehostd.db.evidence': {
    before: 'systemctl stop edgehostd.socket edgehostd.service; cd /var/lib/edgehostd',
    after: start,
  },
  'journalctl -u edgehostd -g "another program"': { exitCode: 1 },
  'journalctl -u edgehostd -g "left out"': { exitCode: 1 },
  'journalctl -u edgehostd -g "more requests without a session"': { exitCode: 1 },
  "systemctl stop edgehostd; sqlite3 /var/lib/edgehostd/edgehostd.db 'DELETE FROM guess'; systemctl start edgehostd":
    {},
  'systemctl stop edgehostd.socket edgehostd.service': { after: start },
  'systemctl disable edgehostd.socket edgehostd.service': {
    after: 'systemctl enable edgehostd.socket edgehostd.service',
  },
  'systemctl edit edgehostd.socket':
    'is the beginning of the block for one NIC, which is tried as a whole below',
  "printf 'api:\\n  address: 192.168.10.5\\n  port: 8443\\n' > /etc/edgehostd/config.d/10-listen.yaml":
    'belongs to the block for one NIC, which is tried as a whole below',
  'systemctl daemon-reload && systemctl stop edgehostd.service && systemctl restart edgehostd.socket && systemctl start edgehostd.service':
    'belongs to the block for one NIC, which is tried as a whole below',
  "pamtester -I rhost=127.0.0.1 edgehostd <user> 'authenticate(PAM_DISALLOW_NULL_AUTHTOK)' acct_mgmt": {
    with: { pamtester: `printf '%s\\n' '${right}' | /usr/lib/edgehostd/pamtester`, '<user>': 'anna' },
    shows: /successfully authenticated/,
  },
  'passwd <user>': {
    with: { 'passwd <user>': `printf '%s\\n' '${right}' '${right}' | passwd anna` },
  },
  'systemctl status edgehostd': { shows: /active \(running\)/ },
  'edgehostctl session revoke-all': {
    before: 'systemctl stop edgehostd.socket edgehostd.service',
    after: `test ! -e /var/lib/edgehostd/secret; ${start}`,
  },
  'skopeo copy --all docker://docker.io/library/busybox:1.36 oci:images:docker.io/library/busybox:1.36':
    'needs the network, which a booted host of these tests does not have',
  'helm pull oci://ghcr.io/stefanprodan/charts/podinfo --version 6.0.0':
    'needs the network, which a booted host of these tests does not have',
  'edgehostctl content build --oci-layout images --chart podinfo-6.0.0.tgz --definition shop.tgz --output bundle.tar.zst':
    'needs images: content.test.ts',
  'edgehostctl content build': 'is the name of a command: content.test.ts',
  'edgehostctl content inspect bundle.tar.zst': { before: buildBundle, shows: /note/ },
  'tar -xOf bundle.tar.zst index.json >index.json': { before: buildBundle, after: 'test -s index.json' },
  'openssl dgst -sha256 -sign key.pem -out index.json.sig index.json': {
    before: `${newKey}; echo '{}' > index.json`,
    after: 'test -s index.json.sig',
  },
  'edgehostctl --host HOST content upload bundle.tar.zst': {
    before: `login; ${buildBundle}`,
    with: { HOST: 'localhost' },
    shows: /bundle/,
    after: 'edgehostctl forget localhost',
  },
  'edgehostctl --host HOST content upload bundle.tar.zst --signature index.json.sig':
    'needs a host with a signing key: content.test.ts',
  'touch FILE': {},
  'edgehostctl content usage': { shows: /free/i },
  'edgehostctl content list': { shows: /UID/ },
  'edgehostctl content images': { shows: /IMAGE/ },
  'edgehostctl content images --filter locations.namespace=k8s.ioANDcanBePulledHere=false': {},
  'edgehostctl content images --refresh': {},
  'edgehostctl content show UID': 'needs a bundle: content.test.ts',
  'edgehostctl content delete UID': 'needs a bundle: content.test.ts',
  'systemctl stop edgehostd': { after: start },
  'mkdir -p /var/lib/edgehostd/content': {},
  'mount /dev/disk/by-label/content /var/lib/edgehostd/content': 'needs a disk: content.test.ts',
  "printf 'content:\\n  requireMount: true\\n' >/etc/edgehostd/config.d/content.yaml": {
    after: 'rm /etc/edgehostd/config.d/content.yaml',
  },
  'systemctl start edgehostd': {},
  'edgehostctl content registry show': { shows: /http:\/\/127\.0\.0\.1:5081/ },
  'edgehostctl content registry config --for containerd': { shows: /_default\/hosts\.toml/ },
  'edgehostctl content registry config --for k3s': { shows: /registries\.yaml/ },
  'edgehostctl content registry config --for podman': { shows: /registries\.conf\.d/ },
  [openRegistry]: { after: 'rm /etc/edgehostd/config.d/registry.yaml' },
  'edgehostctl content registry config --for docker': {
    before: `${openRegistry}; systemctl restart edgehostd`,
    shows: /registry-mirrors/,
    after: 'rm /etc/edgehostd/config.d/registry.yaml; systemctl restart edgehostd',
  },
  'rm /var/lib/edgehostd/registry-password': {
    before: 'cp -p /var/lib/edgehostd/registry-password old',
    after: `
      systemctl reload edgehostd
      until [ -s /var/lib/edgehostd/registry-password ]; do sleep 0.1; done
      ! cmp -s old /var/lib/edgehostd/registry-password`,
  },
  'sudo edgehostctl cluster create --name shop --definition shop.tar.zst --set-file password=/run/password --dry-run':
    ofCluster,
  'sudo edgehostctl cluster create --name shop --definition shop.tar.zst --set-file password=/run/password --wait':
    ofCluster,
  'edgehostctl definition upload shop.tar.zst': 'needs a definition: test/e2e/cluster/life.test.ts',
  'sudo edgehostctl cluster create cluster.yaml': ofCluster,
  'sudo edgehostctl cluster get': ofCluster,
  'edgehostctl api get /v1/edge-mgmt/cluster/revisions': ofCluster,
  "edgehostctl api put '/v1/edge-mgmt/cluster/settings?dryRun=true' --data settings.json": ofCluster,
  'sudo edgehostctl cluster kubectl -- get pods -A': ofCluster,
  'edgehostctl cluster kubectl -- get pods': ofCluster,
  'edgehostctl cluster kubectl -- delete pvc NAME --namespace NAMESPACE': ofCluster,
  'edgehostctl --host HOST cluster kubectl -- exec -it web-0 -- sh': ofCluster,
  'sudo edgehostctl cluster delete --wait': ofCluster,
  'edgehostctl cluster delete --wait': ofCluster,
  'apt remove edgehostd': ofPackage,
  'apt purge edgehostd': ofPackage,
  'edgehostctl --host <host> cluster watch': ofCluster,
  'edgehostctl cluster watch': ofCluster,
  'edgehostctl cluster kubeconfig': ofCluster,
  'edgehostctl cluster get': ofCluster,
  'edgehostctl cluster logs [POD] [--namespace NAME] [--container NAME]':
    'needs a cluster: test/e2e/cluster/trouble.test.ts',
  'edgehostctl cluster events': {},
  'edgehostctl cluster diff --definition shop-1.1.tar.zst': ofChange,
  'edgehostctl cluster apply': ofChange,
  'edgehostctl cluster apply --set replicas=3 --set-file password=/run/password': ofChange,
  "edgehostctl cluster apply --definition shop-1.1.tar.zst --schedule-at '2031-05-01 02:00' --yes": ofChange,
  'edgehostctl cluster revisions': ofChange,
  'edgehostctl cluster rollback': ofChange,
  'edgehostctl cluster settings --ntp 192.0.2.1 --ssh-key admin.pub': ofChange,
  'edgehostctl cluster certificates': ofChange,
  'edgehostctl cluster certificates renew': ofChange,
  "journalctl -u 'edgehostd-step-kubernetes-restore*'":
    'needs a restoration: test/e2e-long/cluster/upgrade-broken.test.ts',
  "edgehostctl api get '/v1/edge-mgmt/edgehosts/current/error-logs?logCount=50'": { shows: /items/ },
  'edgehostctl content build --programs kubeadm=1.34.4:DIR': {
    before: 'mkdir DIR; echo program > DIR/kubeadm; chmod +x DIR/kubeadm',
    with: { '1.34.4:DIR': '1.34.4:DIR --output bundle.tar.zst' },
  },
  'journalctl -u kubelet': {},
  'sudo ctr --address /run/edgehostd-containerd/containerd.sock --namespace k8s.io containers list':
    ofCluster,
  "systemctl list-units 'edgehostd-step-*'": {},
  'ip neighbour flush to ADDRESS': { with: { ADDRESS: '192.0.2.1' } },
  'dmesg --level=err': 'reads the kernel of the machine, not of the booted host',
  'systemctl restart edgehostd.service': {},
  'edgehostctl host inventory': {},
  'kubectl drain': ofCluster,
  'edgehostctl host time': 'needs a time service: host-setup.test.ts',
  'edgehostctl platform connect': ofPlatform,
  'edgehostctl configuration set': 'needs a proxy: configuration.test.ts',
  'edgehostctl host reboot': 'ends the host of the others: power-stops.test.ts',
  'edgehostctl host reset': 'ends the host of the others: reset.test.ts',
  'apt install dmidecode ethtool pciutils usbutils smartmontools':
    'needs the network, which a booted host of these tests does not have',
  'systemctl stop edgehostd.service; rm -r /var/lib/edgehostd/tls': { after: start },
  'systemctl start edgehostd.service': {},
  'systemctl start edgehostd.socket edgehostd.service': {},
}

/** Words that a trial may use. */
const words = `
fingerprint() { openssl x509 -noout -fingerprint -sha256 -in /var/lib/edgehostd/tls/certificate.pem | cut -d= -f2; }
login() {
  printf '%s\\n' '${right}' |
    edgehostctl --host localhost --fingerprint "$(fingerprint)" login anna --password-stdin
}
cd "$(mktemp -d)"
`

interface Block {
  readonly kind: string
  readonly text: string
}

const blocks: readonly Block[] = [...document.matchAll(/^ *```(\w+)\n([^]*?)^ *```$/gm)].map(
  ([, kind = '', text = '']) => ({ kind, text }),
)

/** Command lines of the blocks, without comments. */
const lines = blocks
  .filter(({ kind }) => kind === 'sh')
  .flatMap(({ text }) => text.split('\n'))
  .map((line) => line.replace(/(^| +)# .*$/, '').trim())
  .filter((line) => line !== '')

/** Inline code of more than one word. */
const spans = [...document.replaceAll(/^ *```[^]*?^ *```$/gm, '').matchAll(/`([^`\n]+)`/g)]
  .map(([, span = '']) => span)
  .filter((span) => span.includes(' '))

let host: Edgehostd

beforeAll(async () => {
  host = await bootEdgehostd({ lower: 'machine' })
  await host.addUser({ name: 'anna', password: right, groups: ['sudo'] })
  await host.write('/root/edgehostd-kubernetes_0_all.deb', await kubernetesPackage(inject('deb')))
})
afterAll(() => host.unplug())

/** Runs a script as root would type it, who needs no sudo. */
const type = (script: string) =>
  host.run(['bash', '--norc', '-uo', 'pipefail', '-c', `${words}${script.replaceAll('sudo ', '')}`], {
    env: { HOME: '/root', TERM: 'dumb', PAGER: 'cat' },
  })

it('every command of the operations document is tried here, or has a reason why not, and nothing else is', async () => {
  const programs = [...new Set(spans.map((span) => span.split(' ')[0]!))].filter((word) =>
    /^[a-z]+$/.test(word),
  )
  const known = await host.run([
    'bash',
    '-c',
    'for word; do if [ "$word" = sudo ] || [ "$word" = pamtester ] || type "$word" > /dev/null 2>&1; then echo "$word"; fi; done',
    'bash',
    ...programs,
  ])
  const ofText = spans.filter((span) => known.stdout.split('\n').includes(span.split(' ')[0]!))
  expect([...new Set([...lines, ...ofText])].sort()).toEqual(Object.keys(commands).sort())
})

describe('on a fresh installation', () => {
  it('a fresh installation has a folder for drop-ins', async () => {
    expect((await host.output(['stat', '-c', '%a %U %F', '/etc/edgehostd/config.d'])).trim()).toBe(
      '755 root directory',
    )
  })

  const tried = Object.entries(commands).flatMap(([command, trial]) =>
    typeof trial === 'string' ? [] : [[command, trial] as const],
  )
  it.each(tried)('the operations command works: %s', async (command, trial) => {
    const typed = Object.entries(trial.with ?? {}).reduce(
      (text, [what, by]) => text.replaceAll(what, by),
      command,
    )
    const { before = 'true', after = 'true', shows = /^/, exitCode = 0 } = trial
    const script = `
      set -e; { ${before}
      } > /dev/null; set +e
      ${typed}
      code=$?; [ $code = ${exitCode} ] || { echo "ended with $code" >&2; exit 1; }
      set -e; { ${after}
      } > /dev/null`
    const ended = await type(script)
    expect(ended.exitCode, ended.stderr).toBe(0)
    expect(ended.stdout + ended.stderr).toMatch(shows)
    expect((await type('edgehostctl status')).exitCode).toBe(0)
  })
})

const dropIns = blocks.flatMap(({ kind, text }) => {
  const path = /^# (\/etc\/edgehostd\/config\.d\/\S+)\n/.exec(text)?.[1]
  return kind === 'yaml' ? [[path, text] as const] : []
})

/** Files that a drop-in needs. */
const beside: Readonly<Record<string, string>> = {
  '/etc/edgehostd/config.d/10-certificate.yaml': `mkdir -p /etc/ssl/edge; openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 \
    -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout /etc/ssl/edge/key.pem -out /etc/ssl/edge/chain.pem`,
}

describe('a drop-in of the document', () => {
  it.each(dropIns)('the documented drop-in %s is accepted', async (path, text) => {
    const key = (await type(`${newKey}; openssl pkey -in key.pem -pubout | base64 -w 0`)).stdout
    const written = text.replace('LS0tLS1...', key)
    const script = `
      set -e; { ${beside[path!] ?? 'true'}
      } 2> /dev/null
      cat > ${path} <<'END'\n${written}END
      edgehostd --check-config; systemctl restart edgehostd; systemctl is-active edgehostd; rm ${path}; systemctl restart edgehostd`
    expect(await type(script)).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining('active') as string,
    })
  })
})

describe('the block for one NIC or another port', () => {
  it('the documented block for one NIC or another port moves the daemon there', async () => {
    const { text } = blocks.find((block) => block.text.startsWith('systemctl edit edgehostd.socket\n'))!
    const typed = text.split('\n').filter((line) => line.startsWith('# '))
    const commandLines = text.split('\n').filter((line) => line !== '' && !line.startsWith('# '))
    // The text that a reader types into the editor.
    const editor = '/root/editor'
    const section = typed.map((line) => line.slice(2)).join('\n')
    await host.write(editor, `#!/bin/sh\ncat > "$1" <<'END'\n${section}\nEND\n`, 0o755)
    // systemctl edit needs a terminal, here script(1).
    const [edit, ...others] = commandLines
    const ended = await type(
      `set -e; SYSTEMD_EDITOR=${editor} script -qec '${edit}' /dev/null; ${others.join('\n')}`,
    )
    expect(ended.exitCode, ended.stdout + ended.stderr).toBe(0)
    await host.output(['ip', 'address', 'add', '192.168.10.5/32', 'dev', 'lo'])
    const ping = 'curl -sSk -o /dev/null -w "%{http_code}" https://192.168.10.5:8443/v1/ping'
    expect((await type(ping)).stdout).toBe('200')
    expect((await type('curl -sk https://127.0.0.1:5080/v1/ping')).exitCode).toBe(7)
  })
})
