import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '../e2e/host/eventually.ts'
import { output } from '../e2e/host/process.ts'
import { cache, debian } from '../e2e/host/roots.ts'

/** A command in the foreground. */
export interface Running {
  hasEnded(): boolean
  pressCtrlC(): Promise<void>
}

/** A Debian that holds what debootstrap's minbase lays out and nothing else, on the network of this machine. */
export interface FreshDebian {
  /** Its root folder, as this machine sees it. */
  readonly root: string
  /** Runs a bash script as root in root's home and gives its standard output; any failing line fails the test. */
  sh(script: string, timeoutMs: number): Promise<string>
  /** Starts a bash script as in the foreground of a terminal; its output is in a file in root's home. */
  start(script: string, log: string): Running
  /** Ends it at once and removes everything of it. */
  unplug(): Promise<void>
}

// Everything mounted here is in the mount namespace of this one process and ends with it. systemd-nspawn gives it
// /proc, /dev and a first process that reaps; it does not boot.
const script = `
set -eu
folder=$1 lower=$2; shift 2
mount -t tmpfs -o mode=0755,size=8g tmpfs "$folder/cow"; mkdir "$folder/cow/upper" "$folder/cow/work"
mount -t overlay overlay -o "lowerdir=$lower,upperdir=$folder/cow/upper,workdir=$folder/cow/work" "$folder/root"
exec systemd-nspawn --directory="$folder/root" --register=no --keep-unit --resolv-conf=copy-host --as-pid2 "$@" sleep infinity
`

/** Makes it, copy on write, with the registry settings of apt and npm of this machine. */
export async function enterFreshDebian(): Promise<FreshDebian> {
  const lower = await debian('fresh', [])
  const folder = await mkdtemp(join(tmpdir(), `edgehost-${process.pid}-`))
  for (const name of ['root', 'cow', 'way']) await mkdir(join(folder, name))
  const way = await wayToRegistries(join(folder, 'way'))
  // Avoids a second download of the same files.
  const archives = join(cache, 'fresh-archives')
  await mkdir(join(archives, 'partial'), { recursive: true })
  const holder = spawn(
    'setpriv',
    [
      ...['--pdeathsig', 'KILL', 'unshare', '--pid', '--fork', '--kill-child', '--mount', '--mount-proc'],
      ...['--propagation', 'slave', 'bash', '-c', script, 'fresh-debian', folder, lower],
      ...[`--bind=${archives}:/var/cache/apt/archives`, ...way.binds],
    ],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C', SYSTEMD_NSPAWN_UNIFIED_HIERARCHY: '1' },
    },
  )
  let complaints = ''
  holder.stderr.on('data', (chunk: Buffer) => (complaints += chunk.toString()))
  const ended = new Promise<void>((resolve) => holder.once('exit', () => resolve()))
  const unplug = async () => {
    holder.kill('SIGKILL')
    await ended
    await rm(folder, { recursive: true, force: true })
  }
  try {
    const leader = await eventually(async () => {
      if (holder.exitCode !== null) throw new Error(`systemd-nspawn ended:\n${complaints}`)
      const nspawn = await firstChild(holder.pid)
      const first = await firstChild(nspawn)
      // systemd-nspawn has other children for a moment: it is the one that has started the program.
      const program = await firstChild(first)
      const name = program === undefined ? '' : await readFile(`/proc/${program}/comm`, 'utf8')
      if (first === undefined || name.trim() !== 'sleep')
        throw new Error(`no first process yet:\n${complaints}`)
      return first
    }, 60_000)
    const inside = (text: string) => [
      ...['-t', String(leader), '-a', 'env', '-i', 'HOME=/root', 'TERM=dumb'],
      ...['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', ...way.variables],
      ...['bash', '--norc', '-euo', 'pipefail', '-c', `cd; ${text}`],
    ]
    return {
      root: `/proc/${leader}/root`,
      sh: (text, timeoutMs) => output('nsenter', inside(text), { timeoutMs }),
      start(text, log) {
        const child = spawn('nsenter', inside(`exec >'${log}' 2>&1; ${text}`), {
          stdio: 'ignore',
          detached: true,
        })
        const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
        return {
          hasEnded: () => child.exitCode !== null || child.signalCode !== null,
          async pressCtrlC() {
            if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid!, 'SIGINT')
            await gone
          },
        }
      },
      unplug,
    }
  } catch (error) {
    await unplug()
    throw error
  }
}

/** Proxies, authorities and settings of this machine, which belong to it and to nothing that is committed. */
async function wayToRegistries(folder: string): Promise<{ binds: string[]; variables: string[] }> {
  const settings = (await output('apt-config', ['dump']))
    .split('\n')
    .filter((line) => /^Acquire::(https?::|Check-|Retries|Force)/.test(line))
  await writeFile(join(folder, 'apt.conf'), `${settings.join('\n')}\n`)
  const binds = [`--bind-ro=${folder}/apt.conf:/etc/apt/apt.conf.d/00machine`]
  const variables = Object.entries(process.env).flatMap(([name, value]) =>
    /^((https?|no)_proxy|npm_config_(registry|https?-proxy|noproxy))$/i.test(name)
      ? [`${name}=${value}`]
      : [],
  )
  const settingsOfUser = join(homedir(), '.npmrc')
  if (existsSync(settingsOfUser)) binds.push(`--bind-ro=${settingsOfUser}:/root/.npmrc`)
  const authorities = process.env.NODE_EXTRA_CA_CERTS
  if (authorities !== undefined && existsSync(authorities)) {
    await copyFile(authorities, join(folder, 'authorities.pem'))
    binds.push(`--bind-ro=${folder}/authorities.pem:/var/lib/authorities.pem`)
    variables.push('NODE_EXTRA_CA_CERTS=/var/lib/authorities.pem')
  }
  return { binds, variables }
}

async function firstChild(pid: number | undefined): Promise<number | undefined> {
  if (pid === undefined) return undefined
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return Number(children.split(' ')[0]) || undefined
}
