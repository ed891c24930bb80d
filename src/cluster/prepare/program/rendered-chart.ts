import { isRecord } from '../../../base/json.ts'
import { listsWithKeyTwice } from '../../../kubernetes/list-keys.ts'
import { installedObject, type InstalledObject } from './installed-objects.ts'
import { itemsOf } from './objects.ts'
import { readPlain, type PlainText } from '../../../definition/rules/plain-values.ts'
import { textOf, valueAt } from './plain.ts'

/** What is read of a rendered chart. */
export interface RenderedChart {
  /** Whole, those that may have images or that define kinds. */
  readonly objects: readonly unknown[]
  /** All that an installation applies, hooks included. */
  readonly installed: readonly InstalledObject[]
  /** Why helm cannot install what it has rendered, each with its file and as the end of a sentence. */
  readonly problems: readonly string[]
  /** Lists with a key twice, each with its file: helm installs them, and the API server takes those that it does not check. */
  readonly warnings: readonly string[]
  /** What helm keeps of it in the release: all but the files of `crds/`. */
  readonly kept: readonly string[]
}

// To parse all of a large chart would take seconds.
const readWhole = /image|CustomResourceDefinition|^\s*["']?kind["']?:.*(?:Role|List|Service|Webhook)/m
// At the beginning of a line: what is written otherwise is parsed.
const kindLine = /^kind\s*:\s*\S/m
const versionLine = /^apiVersion\s*:\s*\S/m
const sourceLine = /^\s*# Source: (\S+)\n/
// In the folder of the chart, or in that of one that it depends on; not the folder of templates of this name.
const ofCrds = /^[^/]+\/(?:charts\/[^/]+\/)*crds\//

// helm creates objects without server-side apply; of the lists with a key twice the validation of the API server refuses these only:
// pkg/apis/core/validation and pkg/apis/admissionregistration/validation.
const refusedLists =
  /(?:^|\.)(?:containers|initContainers|volumes|volumeMounts|volumeDevices|topologySpreadConstraints|webhooks)$|^spec\.ports$/

/**
 * Reads the output of `helm template`. helm itself parses neither the files of `crds/` nor looks for the kind of an object before it
 * installs them.
 */
export function readRenderedChart(text: string): RenderedChart {
  const objects: unknown[] = []
  const installed: InstalledObject[] = []
  const problems: string[] = []
  const warnings: string[] = []
  const kept: string[] = []
  for (const document of text.split(/^---$/m)) {
    const source = sourceLine.exec(document)?.[1]
    const isOfCrds = source !== undefined && ofCrds.test(source)
    if (!isOfCrds) kept.push(document)
    const content = document.replace(sourceLine, '')
    const isNamed = kindLine.test(content) && versionLine.test(content)
    const isWhole = !isNamed || readWhole.test(content)
    const file = source ?? 'a template'
    const read = isWhole ? readPlain(content) : readHead(content)
    // helm has parsed all others, and takes what it can read.
    if (isOfCrds) problems.push(...read.problems.map((problem) => `has ${file}, which ${problem}`))
    for (const object of read.documents.flatMap(itemsOf)) {
      const missing = ['apiVersion', 'kind'].find((field) => !isRecord(object) || !object[field])
      if (missing !== undefined) {
        problems.push(`has in ${file} an object without ${missing}`)
        continue
      }
      if (isWhole) objects.push(object)
      for (const { path, key } of isWhole ? listsWithKeyTwice(object) : []) {
        const which = `has in ${file} a ${textOf(valueAt(object, 'kind'))} ${textOf(valueAt(object, 'metadata', 'name')) ?? ''}, whose list ${path} has ${key} twice`
        if (refusedLists.test(path)) problems.push(`${which}; Kubernetes refuses it, so leave one out`)
        else
          warnings.push(
            `${which}; server-side apply refuses it and a later change may lose both, so leave one out`,
          )
      }
      const from = isOfCrds ? 'crds' : fromOf(object)
      const found = from && installedObject(object, from)
      if (found) installed.push(found)
    }
  }
  return { objects, installed, problems, warnings, kept }
}

/** Undefined for a hook that an installation does not run; one of an unknown event is left out by helm altogether. */
function fromOf(object: unknown): 'template' | 'hook' | undefined {
  const hook = textOf(valueAt(object, 'metadata', 'annotations', 'helm.sh/hook'))
  if (!hook) return 'template'
  return /(?:^|,)\s*(?:pre|post)-install\s*(?:,|$)/i.test(hook) ? 'hook' : undefined
}

const headKey = /^(?:apiVersion|kind|metadata)\s*:/

/**
 * The first fields of an object in block style, without the rest of the text, which is often most of it: in block style a line with
 * text in its first column begins a field.
 */
function readHead(document: string): PlainText {
  let isKept = false
  const lines = document.split('\n').filter((line) => {
    if (/^[^\s#]/.test(line)) isKept = headKey.test(line)
    return isKept
  })
  const read = readPlain(lines.join('\n'))
  const isHead =
    read.documents.length === 1 &&
    ['apiVersion', 'kind', 'metadata'].every((field) => valueAt(read.documents[0], field))
  return isHead ? read : readPlain(document)
}
