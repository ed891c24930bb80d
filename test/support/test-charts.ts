import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Makes a chart archive with the files of its templates. @returns its path */
export async function makeChart(
  { helm, folder }: { helm: string; folder: string },
  {
    name,
    version,
    templates,
  }: { name: string; version: string; templates: Readonly<Record<string, string>> },
): Promise<string> {
  const made = join(await mkdtemp(join(folder, 'chart-')), name)
  await mkdir(join(made, 'templates'), { recursive: true })
  await writeFile(join(made, 'Chart.yaml'), `apiVersion: v2\nname: ${name}\nversion: ${version}\n`)
  for (const [file, text] of Object.entries(templates)) await writeFile(join(made, 'templates', file), text)
  await run(helm, ['package', made, '--destination', folder], { env: { HOME: folder } })
  return join(folder, `${name}-${version}.tgz`)
}

/** A template of a Deployment called as the release, of `.Values.replicas` pods, and of a ConfigMap with `.Values.text`. */
export const webTemplate = `
apiVersion: apps/v1
kind: Deployment
metadata: { name: '{{ .Release.Name }}' }
spec:
  replicas: {{ .Values.replicas }}
  selector: { matchLabels: { app: '{{ .Release.Name }}' } }
  template:
    metadata: { labels: { app: '{{ .Release.Name }}' } }
    spec: { containers: [{ name: web, image: 'example.com/web:1' }] }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: '{{ .Release.Name }}' }
data: { text: '{{ .Values.text }}' }
`
