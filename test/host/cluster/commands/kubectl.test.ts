import { spawn } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { skewNotice } from '../../../../src/cluster/commands/kubectl.ts'
import { createCtl } from '../../../support/ctl.ts'
import { makeMaterial, startServer } from '../../../support/https-server.ts'
import { detailsOf } from '../../../support/played-cluster.ts'
import { waitFor } from '../../../support/wait-for.ts'

const kubeconfig = 'apiVersion: v1\nkind: Config\nusers: [{name: admin, user: {token: hunter2}}]\n'
const ctl = createCtl()
/** The PATH of the machine that is not the host, and its folder of temporary files. */
const programs = mkdtempSync(join(tmpdir(), 'kubectl-'))
const temporary = join(programs, 'tmp')
/** What the played kubectl writes about itself. */
const seen = (name: string) => join(programs, name)

let server: Awaited<ReturnType<typeof startServer>>
let fingerprint: string
let asked: string[] = []
let status: object
let role: string

beforeAll(async () => {
  mkdirSync(temporary)
  const material = await makeMaterial()
  fingerprint = new X509Certificate(material.cert).fingerprint256
  server = await startServer(material, ({ url = '' }, response) => {
    if (url !== '/v1/ping') asked.push(url)
    const body = url.startsWith('/v1/users/') ? { userName: 'ada', role } : detailsOf(status)
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
})
afterAll(async () => {
  await server.stop()
  for (const folder of [ctl.home, programs]) rmSync(folder, { recursive: true })
})
beforeEach(() => {
  asked = []
  status = { kubeconfig, k8sVersion: '1.34.4' }
  role = 'admin'
  for (const name of readdirSync(programs)) if (name !== 'tmp') rmSync(join(programs, name))
})

/** Puts a kubectl into PATH that shows its version, and otherwise notes its configuration and does the work. */
function install(work: string, version = 'v1.34.1'): void {
  const file = join(programs, 'kubectl')
  writeFileSync(
    file,
    `#!/bin/bash
if [[ $1 == version ]]; then echo '{"clientVersion": {"gitVersion": "${version}"}}'; exit; fi
stat -c %a "$KUBECONFIG" "\${KUBECONFIG%/*}" > '${seen('modes')}'
cp "$KUBECONFIG" '${seen('config')}'
${work}
`,
  )
  chmodSync(file, 0o755)
}

const words = (args: readonly string[]) => [
  ...[ctl.program, '--host', `127.0.0.1:${server.port}`, '--fingerprint', fingerprint],
  ...['cluster', 'kubectl', '--', ...args],
]
const env = () => ({ PATH: `${programs}:/usr/bin:/bin`, HOME: ctl.home, TMPDIR: temporary, TERM: 'xterm' })

/** Runs `edgehostctl --host … cluster kubectl -- …` without a terminal. */
const run = (args: readonly string[], input = '', more: NodeJS.ProcessEnv = {}) =>
  execa('/usr/bin/setsid', ['--wait', process.execPath, ...words(args)], {
    ...{ reject: false, stripFinalNewline: false, extendEnv: false, timeout: 20_000 },
    ...{ env: { ...env(), ...more }, input },
  })

/** Starts it so, and waits until the played kubectl works. */
async function start(work: string) {
  install(`${work}\ntouch '${seen('works')}'\nwhile :; do sleep 0.05; done`)
  const child = spawn(process.execPath, words(['get', 'pods', '-w']), {
    ...{ env: env(), stdio: 'ignore', detached: true },
  })
  const ended = once(child, 'exit')
  await isThere('works')
  return { child, ended }
}

const isThere = (name: string) => waitFor(() => expect(existsSync(seen(name))).toBe(true))
const leftOver = () => readdirSync(temporary)

describe('cluster kubectl on another machine', () => {
  it('runs the kubectl of PATH with arguments, input, output and exit status of its own', async () => {
    install('printf "[%s]" "$@"; cat; echo trouble >&2; exit 7')
    const ended = await run(['apply', '-f', '-', '-o', 'wide', '--', 'a b'], 'kind: Pod\n')
    expect(ended).toMatchObject({
      exitCode: 7,
      stdout: '[apply][-f][-][-o][wide][--][a b]kind: Pod\n',
    })
    expect(ended.stderr).toMatch(/trouble\n$/)
    expect(ended.stderr).not.toContain('warning')
  })

  it('its kubeconfig is in a file for this user alone, which is removed afterwards', async () => {
    install('echo "$KUBECONFIG"')
    const { stdout } = await run(['config', 'view'])
    expect(readFileSync(seen('modes'), 'utf8')).toBe('600\n700\n')
    expect(readFileSync(seen('config'), 'utf8')).toBe(kubeconfig)
    expect(stdout.startsWith(temporary)).toBe(true)
    expect(existsSync(stdout.trim())).toBe(false)
    expect(leftOver()).toEqual([])
  })

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const)(
    'passes on %s, and removes the file when kubectl has ended by it',
    async (signal) => {
      const { child, ended } = await start(
        `trap 'echo ${signal} > ${seen('trapped')}; exit 9' ${signal.slice(3)}`,
      )
      expect(leftOver()).toHaveLength(1)
      child.kill(signal)
      expect(await ended).toEqual([9, null])
      expect(readFileSync(seen('trapped'), 'utf8')).toBe(`${signal}\n`)
      expect(leftOver()).toEqual([])
    },
  )

  it('a kubectl that a signal ends gives the exit status of a shell', async () => {
    const { child, ended } = await start('')
    child.kill('SIGTERM')
    expect(await ended).toEqual([143, null])
    expect(leftOver()).toEqual([])
  })

  it('on a terminal kubectl has the terminal, and Ctrl-C reaches it once', async () => {
    install(`trap 'echo >> ${seen('trapped')}' INT
[[ -t 0 && -t 1 ]] && echo has the terminal
touch '${seen('works')}'
read -r line
echo "typed $line"
exit 5`)
    const line = ['exec', process.execPath, ...words(['exec', '-it', 'web'])].join(' ')
    const child = execa('script', ['-qec', line, '/dev/null'], {
      ...{ reject: false, extendEnv: false, timeout: 20_000, env: env(), stdin: 'pipe' },
    })
    await isThere('works')
    child.stdin.write('\u0003')
    await isThere('trapped')
    child.stdin.write('hello\n')
    const { stdout, exitCode } = await child
    expect(stdout).toContain('has the terminal')
    expect(stdout).toMatch(/typed hello\r?$/m)
    expect(exitCode).toBe(5)
    expect(readFileSync(seen('trapped'), 'utf8')).toBe('\n')
    expect(leftOver()).toEqual([])
  })

  it('a kubectl that is two minor versions older is used, with a word on it', async () => {
    install('echo used', 'v1.32.9')
    const ended = await run(['get', 'pods'])
    expect(ended).toMatchObject({ exitCode: 0, stdout: 'used\n' })
    expect(ended.stderr).toMatch(/kubectl is of version 1\.32\.9\. The cluster has Kubernetes\s+1\.34\.4/)
  })

  it('without a kubectl it says which one to install, and gets no kubeconfig', async () => {
    const ended = await run(['get', 'pods'], '', { PATH: `${programs}:/nowhere` })
    expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
    expect(ended.stderr).toMatch(/there is no kubectl in PATH; install the one of Kubernetes 1\.34\.4/)
    expect(ended.stderr).toContain('ssh root@127.0.0.1 edgehostctl cluster kubectl -- get pods')
    expect(asked).toEqual(['/v1/edge-mgmt/cluster/details?kubeconfig=false'])
  })

  it.each([
    ['viewer', 'the kubeconfig is for administrators of the host, and ada is not one'],
    ['admin', 'the control plane is not set up yet'],
  ])('for a user with the role %s who gets no kubeconfig it says why, and runs nothing', async (its, why) => {
    install('touch ran')
    role = its
    status = {}
    const ended = await run(['get', 'pods'])
    expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
    expect(ended.stderr).toContain(why)
    expect(existsSync(seen('config'))).toBe(false)
    expect(leftOver()).toEqual([])
  })

  it('a program that cannot be started is a failure with its path', async () => {
    writeFileSync(join(programs, 'kubectl'), '#!/nowhere/bash\n')
    chmodSync(join(programs, 'kubectl'), 0o755)
    const ended = await run(['get', 'pods'])
    expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
    expect(ended.stderr).toMatch(/kubectl cannot be run: /)
    expect(leftOver()).toEqual([])
  })
})

describe('cluster kubectl on the host itself', () => {
  it('is for root, and says what to type', async () => {
    const home = mkdtempSync(join(tmpdir(), 'nobody-'))
    try {
      chmodSync(home, 0o755)
      const program = join(home, 'edgehostctl.cjs')
      writeFileSync(program, readFileSync(ctl.program))
      // Nobody may go into the home of root, where this Node may be.
      const node = join(home, 'node')
      copyFileSync(process.execPath, node)
      const ids = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
      const ended = await execa(node, [program, 'cluster', 'kubectl', '--', 'get', 'pods'], {
        ...{ reject: false, extendEnv: false, env: { PATH: '/usr/bin:/bin' }, ...ids, cwd: home },
      })
      expect(ended).toMatchObject({ exitCode: 4, stdout: '' })
      expect(ended.stderr).toContain('sudo edgehostctl cluster kubectl -- get pods')
    } finally {
      rmSync(home, { recursive: true })
    }
  })
})

it.each([
  ['1.34.4', '1.34.4'],
  ['1.33.0', '1.34.4'],
  ['1.35.2+k3s1', '1.34.4'],
  ['1.36.0', ''],
])('kubectl %s fits Kubernetes %s', (own, version) => {
  expect(skewNotice('kubectl', own, version)).toBeUndefined()
})

it.each([
  ['1.32.9', '1.34.4', 'kubectl is of version 1.32.9'],
  ['1.36.0', '1.34.4', 'kubectl is of version 1.36.0'],
  ['2.34.0', '1.34.4', 'kubectl is of version 2.34.0'],
  [undefined, '1.34.4', 'kubectl does not say its version'],
])('kubectl %s is told about for Kubernetes %s', (own, version, words_) => {
  expect(skewNotice('kubectl', own, version)).toContain(words_)
})
