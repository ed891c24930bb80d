import { Agent, request, type IncomingMessage, type RequestOptions } from 'node:http'
import { access } from 'node:fs/promises'
import { createGrowingBuffer } from '../../base/growing-buffer.ts'
import type { CommandRunner } from '../../system/runner.ts'
import {
  createDescriptions,
  documentBytes,
  platformOf,
  textsOf,
  createListBounds,
  budgetMs,
  listBytes,
  type ImageDescription,
  type Runtime,
  type SeenImage,
} from './describe.ts'
import { absent, AnswerNotUnderstood } from './wire.ts'
import { readElements } from './json-elements.ts'

export interface DockerOptions {
  readonly socket: string
  readonly runner: CommandRunner
}

const systemctlMs = 5_000

/**
 * The images of Docker. Paths have no version, so the newest one that the daemon has answers: no version is common to 20.10 and 29.
 * Source: https://docs.docker.com/reference/api/engine/, `ImageList` and `ImageInspect`
 */
export function createDocker({ socket, runner }: DockerOptions): Runtime {
  const descriptions = createDescriptions()

  /** Whether systemd listens instead of Docker, and a connection would start it. */
  async function isStopped(signal: AbortSignal): Promise<boolean> {
    const units = ['docker.socket', 'docker.service']
    const { stdout } = await runner.run('systemctl', ['is-active', ...units], {
      timeoutMs: systemctlMs,
      signal,
    })
    const [listener, service] = stdout.split('\n')
    return listener === 'active' && service === 'inactive'
  }

  async function read(signal: AbortSignal): Promise<readonly SeenImage[] | 'stopped'> {
    await access(socket)
    if (await isStopped(signal)) return 'stopped'
    // Not kept for the next reading: Docker may have been restarted by then.
    const agent = new Agent({ keepAlive: true })
    const get: Get = (path) => getReply({ socketPath: socket, path, agent, signal })
    try {
      return await readAll(get, signal)
    } finally {
      agent.destroy()
    }
  }

  async function readAll(get: Get, signal: AbortSignal): Promise<SeenImage[]> {
    const until = performance.now() + budgetMs
    const images: ListedImage[] = []
    const limits = { maximumBytes: listBytes, elementBytes: documentBytes }
    const bounds = createListBounds()
    for await (const element of readElements(await get('/images/json'), limits)) {
      const image = readImage(element)
      bounds([image.id, ...image.digests, ...image.names])
      images.push(image)
    }
    const wanted = images.map(({ id }) => ({ key: id, describe: () => inspect(get, id) }))
    await descriptions.update(wanted, until, signal)
    return images.map(({ id, sizeBytes, digests, names }) => ({
      digests,
      names,
      description: { sizeBytes, ...(digests.includes(id) ? {} : { imageId: id }), ...descriptions.of(id) },
    }))
  }

  return {
    name: 'docker',
    endpoint: socket,
    unit: 'docker',
    read: (signal) => read(signal).catch(absent),
  }
}

/** Asks for a path; the status of the reply is 200. */
type Get = (path: string) => Promise<IncomingMessage>

interface ListedImage extends Pick<SeenImage, 'digests' | 'names'> {
  readonly id: string
  /** Size of its unpacked files. */
  readonly sizeBytes: number
}

// Docker's text for an image without a name.
const isName = (name: string) => !name.startsWith('<none>')

function readImage(image: Readonly<Record<string, unknown>>): ListedImage {
  const { Id: id, RepoTags: tags, RepoDigests: named, Size: size } = image
  if (typeof id !== 'string') throw new AnswerNotUnderstood('an image has no Id')
  const names = [...textsOf(tags), ...textsOf(named)].filter(isName)
  const digests = textsOf(named).map((name) => name.slice(name.indexOf('@') + 1))
  return {
    id,
    names,
    digests: [...new Set(digests)],
    sizeBytes: Number.isSafeInteger(size) && Number(size) > 0 ? Number(size) : 0,
  }
}

/** The platform of an image, which the list does not say. */
async function inspect(get: Get, id: string): Promise<Partial<ImageDescription> | undefined> {
  const body = createGrowingBuffer(documentBytes)
  for await (const chunk of await get(`/images/${encodeURIComponent(id)}/json`))
    if (!body.add(chunk as Buffer)) return undefined
  const image = JSON.parse(body.bytes().toString()) as Readonly<Record<string, unknown>>
  const platform = platformOf({ os: image.Os, architecture: image.Architecture, variant: image.Variant })
  return platform && { platforms: [platform] }
}

function getReply(options: RequestOptions & { readonly path: string }): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = request({ ...options, host: 'localhost' })
    sent.once('error', (error: NodeJS.ErrnoException) =>
      reject(error.code?.startsWith('HPE_') ? new AnswerNotUnderstood(error.message) : error),
    )
    sent.once('response', (reply) => {
      if (reply.statusCode === 200) resolve(reply)
      else {
        reply.destroy()
        reject(new AnswerNotUnderstood(`the status of ${options.path} is ${reply.statusCode}`))
      }
    })
    sent.end()
  })
}
