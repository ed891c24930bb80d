import { program } from '../base/program.ts'

/** A part of a form. */
export interface FormPart {
  readonly name: string
  readonly fileName?: string
  readonly content: Buffer
}

/** Multipart form data, RFC 7578. */
export function formOf(parts: readonly FormPart[]): { type: string; body: Buffer } {
  const { type, head, tail } = formFrame(parts)
  return { type, body: Buffer.concat([head, tail]) }
}

/** The bytes of a form before and after the content of a part that comes last; without such a part, the whole form. */
export function formFrame(parts: readonly FormPart[], last?: Omit<FormPart, 'content'>) {
  const boundary = `${program.ctl}-${crypto.randomUUID()}`
  const headOf = ({ name, fileName }: Omit<FormPart, 'content'>) => {
    const file = fileName === undefined ? '' : `; filename="${fileName.replaceAll(/["\\\r\n]/g, '_')}"`
    return Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n`)
  }
  const lineEnd = Buffer.from('\r\n')
  const head = parts.flatMap((part) => [headOf(part), part.content, lineEnd])
  if (last) head.push(headOf(last))
  const tail = Buffer.from(`${last ? '\r\n' : ''}--${boundary}--\r\n`)
  return { type: `multipart/form-data; boundary=${boundary}`, head: Buffer.concat(head), tail }
}
