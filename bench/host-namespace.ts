import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { pinned, type ServerProcess } from './server-process.ts'
import { childrenOf } from './usage.ts'

/** A host of its own as far as network, mounts and processes go. It ends with this process, however that ends. */
export interface HostNamespace {
  /** Command in front of one that is to run inside. */
  readonly enter: readonly [string, ...string[]]
  /** Starts a server inside; ready when its log says that it listens. */
  start(order: InsideOrder): Promise<InsideServer>
  /** Ends whatever runs inside; interfaces and mounts go with it. */
  close(): Promise<void>
}

export type InsideServer = Omit<ServerProcess, 'startMs'>

export interface InsideOrder {
  readonly command: readonly [string, ...string[]]
  readonly port: number
  readonly log: string
  readonly environment: NodeJS.ProcessEnv
  readonly core: number | undefined
}

/** What stands in the namespace beside the loopback and one bridge with an address. */
export interface Crowd {
  readonly vethPairs: number
  readonly tmpfsMounts: number
}

const setupLimitMs = 60_000
const startLimitMs = 20_000
const stopLimitMs = 15_000

// Runs as process 1 of the namespace. All ends with it, and it ends with its standard input.
const setUp = `
mount -t sysfs sysfs /sys
ip link set lo up
ip link add host0 type bridge
ip address add 192.0.2.2/24 dev host0
ip link set host0 up
ip route add default via 192.0.2.1
# The pods' ends are in a network of the pods, as on a Kubernetes node.
unshare --net sleep infinity &
until [ "$(readlink /proc/$!/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
for i in $(seq "$1"); do
  printf 'link add veth%s type veth peer name eth%s netns %s\\nlink set veth%s up\\n' $i $i $! $i
done | ip -batch -
for i in $(seq "$1"); do echo "link set eth$i up"; done | nsenter --target=$! --net ip -batch -
if [ "$2" -gt 0 ]; then
  mount -t tmpfs crowd "$3"
  for i in $(seq "$2"); do
    mkdir "$3/$i"
    mount -t tmpfs tmpfs "$3/$i"
  done
fi
echo ready
exec cat > /dev/null
`

/**
 * @param folder empty; the mounts hang below it, inside only
 * @throws Error when it could not be set up; then nothing of it is left
 */
export async function openHostNamespace(folder: string, crowd: Crowd): Promise<HostNamespace> {
  const kinds = ['--net', '--mount', '--pid']
  const words = ['sh', '-ec', setUp, 'sh', String(crowd.vethPairs), String(crowd.tmpfsMounts), folder]
  const outer = spawn('unshare', [...kinds, '--fork', '--mount-proc', ...words], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const exited = once(outer, 'exit')
  const close = async () => {
    outer.stdin.end()
    await exited
  }
  const timer = setTimeout(() => childrenOf(outer.pid ?? 0).forEach(kill), setupLimitMs)
  const lines = createInterface(outer.stdout)
  const [said] = (await Promise.race([once(lines, 'line'), exited])) as unknown[]
  clearTimeout(timer)
  const [inner] = childrenOf(outer.pid ?? 0)
  if (said !== 'ready' || inner === undefined) {
    await close()
    throw new Error('a namespace with interfaces and mounts of its own could not be set up')
  }
  const enter = ['nsenter', `--target=${inner}`, ...kinds, '--'] as const
  return { enter: [...enter], start: (order) => start(enter, order), close }
}

async function start(enter: readonly [string, ...string[]], order: InsideOrder): Promise<InsideServer> {
  const { port, log, environment, core } = order
  const [program, ...args] = pinned([...enter, ...order.command], core)
  writeFileSync(log, '')
  const output = openSync(log, 'a')
  const outer = spawn(program, args, {
    stdio: ['ignore', output, output],
    env: { PATH: process.env.PATH, ...environment },
  })
  closeSync(output)
  const exited = once(outer, 'exit')
  const inside = () => childrenOf(outer.pid ?? 0)
  const stop = async () => {
    for (const pid of inside()) process.kill(pid, 'SIGTERM')
    const timer = setTimeout(() => inside().forEach(kill), stopLimitMs)
    await exited
    clearTimeout(timer)
  }
  const deadline = performance.now() + startLimitMs
  while (!readFileSync(log, 'utf8').includes('"msg":"listening"')) {
    if (outer.exitCode !== null || performance.now() > deadline) {
      await stop()
      throw new Error(
        `${order.command.join(' ')} does not listen:\n${readFileSync(log, 'utf8').slice(-2_000)}`,
      )
    }
    await sleep(20)
  }
  // nsenter(1) stays outside and waits; its one child is the server.
  const [pid] = inside()
  if (pid === undefined) throw new Error(`${program} has ended`)
  return { pid, port, log, stop }
}

const kill = (pid: number) => process.kill(pid, 'SIGKILL')
