/** A block of commands of a document. */
export interface CommandBlock {
  /** The heading that it stands below, without its marks. */
  readonly heading: string
  readonly script: string
}

/** The blocks of commands of a Markdown document, those that are marked `sh`, in their order. */
export function commandBlocks(document: string): CommandBlock[] {
  const blocks: CommandBlock[] = []
  let heading = ''
  let block: string[] | undefined
  let isOther = false
  for (const line of document.split('\n')) {
    const fence = /^```(\w*)$/.exec(line)
    if (fence && !block && !isOther) {
      if (fence[1] === 'sh') block = []
      else isOther = true
    } else if (fence && block) {
      blocks.push({ heading, script: block.join('\n') })
      block = undefined
    } else if (fence) isOther = false
    else if (block) block.push(line)
    else if (!isOther) heading = /^#+ (.+)$/.exec(line)?.[1] ?? heading
  }
  return blocks
}
