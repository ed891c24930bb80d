import type { Platform } from '../../content/format/descriptor.ts'
import { AnswerTooLarge } from './wire.ts'
import { setTimeout as delay } from 'node:timers/promises'
import { createSlices } from '../../base/slices.ts'

/** Facts of an image from its documents. */
export interface ImageDescription {
  /** Size of its documents, configurations and layers, as a registry sends them, each counted once. */
  readonly sizeBytes: number
  /** Only present platforms. */
  readonly platforms: readonly Platform[]
  /** Digest of its configuration, which Docker and Podman call the image id; absent if it has several. */
  readonly imageId?: string
}

/** An image as one runtime has it. */
export interface SeenImage {
  /** Set where the runtime has namespaces. */
  readonly namespace?: string
  /** Digests of its index and its manifest; those that name more come first. Empty if the image was never in a registry. */
  readonly digests: readonly string[]
  /** As the runtime spells them: `docker.io/library/busybox:1.36`, `busybox@sha256:…`. */
  readonly names: readonly string[]
  /** The facts known yet. */
  readonly description: Partial<ImageDescription>
}

/** A runtime of this host. */
export interface Runtime {
  readonly name: 'containerd' | 'docker' | 'podman'
  /** Path of its socket, or of the folder that was read last. */
  readonly endpoint: string
  /** The systemd unit that an operator checks. */
  readonly unit: string
  /**
   * Reads its images. Missing parts of their descriptions are read too, as far as `budgetMs` allows, and the rest the next time.
   * @param signal gives up
   * @returns `absent`: the host does not have it; `stopped`: it does not run, and asking would start it
   */
  read(signal: AbortSignal): Promise<readonly SeenImage[] | 'absent' | 'stopped'>
}

/** Most bytes of an answer that lists images. */
export const listBytes = 64 * 2 ** 20
/** Time of a reading until the last description is asked for; the others follow in the next one. */
export const budgetMs = 4_000

// The kubelet gives each image three names, and a host has some hundred images.
const mostTexts = 100_000
const mostCharacters = 16_777_216

/**
 * Counts the texts that the list of one runtime keeps in memory: images of a few bytes each would otherwise fill the daemon's, however
 * few bytes the list has.
 * @returns a function to call for each image, with its id, names and digests; it throws AnswerTooLarge
 */
export function createListBounds(): (texts: readonly string[]) => void {
  let count = 0
  let characters = 0
  return (texts) => {
    count += texts.length
    for (const { length } of texts) characters += length
    if (count > mostTexts) throw new AnswerTooLarge(`${mostTexts} names and digests`)
    if (characters > mostCharacters)
      throw new AnswerTooLarge(`${mostCharacters} characters of names and digests`)
  }
}

/** Most bytes of an index, manifest or configuration that is read; real ones have some KB. */
export const documentBytes = 1_048_576

/** Reads a document of an image. @returns undefined if it is not here */
type ReadDocument = (digest: string) => Promise<Buffer | undefined>

/**
 * Describes an image by its own documents: how large it is, and for which platforms it is here. A document that is no index or manifest
 * of today counts as one that is not here.
 * Source: https://github.com/opencontainers/image-spec/blob/v1.1.1/image-index.md and manifest.md
 * @param digest of its index or manifest
 */
export async function describeImage(
  digest: string,
  read: ReadDocument,
): Promise<ImageDescription | undefined> {
  const sizes = new Map<string, number>()
  const platforms = new Map<string, Platform>()
  const imageIds = new Set<string>()

  async function addManifest(manifest: Manifest, platform: Platform | undefined): Promise<void> {
    for (const { digest: named, size } of [manifest.config, ...manifest.layers]) sizes.set(named, size)
    imageIds.add(manifest.config.digest)
    const found = platform ?? platformOf(parse(await read(manifest.config.digest)))
    if (found) platforms.set(platformKey(found), found)
  }

  const bytes = await read(digest)
  const document = documentOf(parse(bytes))
  if (!bytes || !document) return undefined
  sizes.set(digest, bytes.length)
  if ('config' in document) await addManifest(document, undefined)
  else
    for (const child of document.children) {
      const childBytes = await read(child.digest)
      const manifest = documentOf(parse(childBytes))
      if (!childBytes || !manifest || !('config' in manifest)) continue
      sizes.set(child.digest, childBytes.length)
      await addManifest(manifest, child.platform)
    }
  const [imageId] = imageIds
  return {
    sizeBytes: [...sizes.values()].reduce((sum, size) => sum + size, 0),
    platforms: [...platforms.values()],
    ...(imageId !== undefined && imageIds.size === 1 ? { imageId } : {}),
  }
}

interface Descriptor {
  readonly digest: string
  readonly size: number
}

interface Manifest {
  readonly config: Descriptor
  readonly layers: readonly Descriptor[]
}

interface Index {
  readonly children: readonly { readonly digest: string; readonly platform: Platform | undefined }[]
}

type Json = Readonly<Record<string, unknown>>

const mostChildren = 1_000

function documentOf(json: Json | undefined): Manifest | Index | undefined {
  if (!json) return undefined
  if (Array.isArray(json.manifests))
    return {
      children: json.manifests.slice(0, mostChildren).flatMap((child: unknown) => {
        const found = descriptorOf(child)
        const platform = (child as { platform?: unknown } | null)?.platform
        // BuildKit's statement about the origin of an image is for the platform unknown/unknown.
        const isStatement = objectOf(platform)?.architecture === 'unknown'
        return found && !isStatement
          ? [{ digest: found.digest, platform: platformOf(objectOf(platform)) }]
          : []
      }),
    }
  const config = descriptorOf(json.config)
  if (!config || !Array.isArray(json.layers)) return undefined
  return { config, layers: json.layers.flatMap((layer) => descriptorOf(layer) ?? []) }
}

function descriptorOf(value: unknown): Descriptor | undefined {
  const { digest, size } = objectOf(value) ?? {}
  return typeof digest === 'string' && Number.isSafeInteger(size) && Number(size) >= 0
    ? { digest, size: Number(size) }
    : undefined
}

/** The platform that a descriptor or a configuration names. */
export function platformOf(json: Json | undefined): Platform | undefined {
  const { os, architecture, variant } = json ?? {}
  if (typeof os !== 'string' || typeof architecture !== 'string' || os === '' || architecture === '')
    return undefined
  return { os, architecture, ...(typeof variant === 'string' && variant !== '' ? { variant } : {}) }
}

/** Equal for equal platforms. */
export const platformKey = ({ os, architecture, variant = '' }: Platform): string =>
  `${os}/${architecture}/${variant}`

/** The texts of a list; none of another value. */
export const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((each): each is string => typeof each === 'string') : []

const objectOf = (value: unknown): Json | undefined =>
  typeof value === 'object' && value !== null ? (value as Json) : undefined

function parse(bytes: Buffer | undefined): Json | undefined {
  if (!bytes || bytes.length > documentBytes) return undefined
  try {
    return objectOf(JSON.parse(bytes.toString()))
  } catch {
    return undefined
  }
}

/** An image to describe. */
export interface Wanted {
  /** Names its content: with the same key the description is the same. */
  readonly key: string
  readonly describe: () => Promise<Partial<ImageDescription> | undefined>
}

/** Descriptions of the images of one runtime, each read once. */
interface Descriptions {
  /**
   * Reads descriptions that are not known, some at a time, until the time is up, and forgets descriptions of images that are gone. One that
   * cannot be read, or not in time, is left for the next time; failed ones are then read last.
   * @param until of performance.now()
   * @param signal ends it without an error
   */
  update(wanted: readonly Wanted[], until: number, signal: AbortSignal): Promise<void>
  /** Empty until it was read. */
  of(key: string): Partial<ImageDescription>
}

const atOnce = 8
const unknown: Partial<ImageDescription> = {}

export function createDescriptions(): Descriptions {
  let known = new Map<string, Partial<ImageDescription>>()
  let failed = new Set<string>()
  return {
    async update(wanted, until, signal) {
      const rest = createSlices()
      const kept = new Map<string, Partial<ImageDescription>>()
      const missing = new Map<string, Wanted>()
      const again = new Map<string, Wanted>()
      for (const each of wanted) {
        const found = known.get(each.key)
        if (found) kept.set(each.key, found)
        else (failed.has(each.key) ? again : missing).set(each.key, each)
        await rest()
      }
      known = kept
      failed = new Set(again.keys())
      const [into, failures] = [known, failed]
      const order = [...missing.values(), ...again.values()].values()
      const work = async () => {
        for (const { key, describe } of order) {
          if (signal.aborted || performance.now() > until) return
          failures.add(key)
          try {
            into.set(key, (await describe()) ?? unknown)
            failures.delete(key)
          } catch {
            // An image is listed also while its description cannot be read.
          }
          await rest()
        }
      }
      const over = new AbortController()
      const time = delay(Math.max(0, until - performance.now()), undefined, {
        ref: false,
        signal: over.signal,
      })
      await Promise.race([Promise.all(Array.from({ length: atOnce }, work)), time.catch(() => undefined)])
      over.abort()
    },
    of: (key) => known.get(key) ?? unknown,
  }
}
